#include <stdint.h>

#include "clr/diagnostics_ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum ipc_command commands[] = { IPC_PROCESS_INFO, IPC_PROCESS_INFO2, IPC_PROCESS_INFO3 };
    uint32_t content_size;
    bool is_error;
    uint64_t session_id;
    struct span header = span_part(span_of(data, size), 0, size < IPC_HEADER_BYTES ? size : IPC_HEADER_BYTES);
    struct span content = span_part(span_of(data, size), header.size, size - header.size);
    ipc_read_header(header, &content_size, &is_error, NULL);
    ipc_result_name(ipc_read_result(content));
    ipc_read_session_id(content, &session_id, NULL);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct ipc_process_info info;
        if (!ipc_read_process_info(content, commands[i], &info, NULL))
            continue;
        ipc_process_text(&info, info.runtime_version);
        ipc_process_info_done(&info);
    }
    return 0;
}
