#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clr/event_profiles.h"
#include "clr/event_providers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All that reads what the user says of events. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_request request = { .buffer_mb = 1 };
    uint64_t rundown = 0;
    bool ignored;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    event_providers_parse(&request.providers, text, NULL);
    event_profiles_add(&request.providers, text, &rundown, NULL);
    event_profiles_add_clr(&request.providers, text, text, &ignored, NULL);
    event_topics_add(&request.providers, text, size);
    event_providers_clash(&request.providers);
    event_request_check(&request, NULL);
    event_request_done(&request);
    free(text);
    return 0;
}
