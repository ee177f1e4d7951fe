#include "clr/jit_opt_out.h"

#include "clr/method_text.h"

enum {
    MODULE_OPTIMIZES = 0x800, /* of a Module's flags: the debugger allows it */
    IMPL_NO_OPTIMIZATION = 0x40,
};

static enum jit_opt_out of_metadata(struct loaded_types *types, const struct method_desc *method,
                                    const struct loaded_module *module)
{
    if (method->kind == METHOD_DYNAMIC)
        return JIT_OPT_OUT_NO;
    if (method_text_check(types, method) != AGREEMENT_RIGHT)
        return JIT_OPT_OUT_UNKNOWN;
    uint32_t flags = ecma_cell(&module->md, ECMA_METHOD_DEF, method->row, ECMA_METHOD_DEF_IMPL_FLAGS);
    return flags & IMPL_NO_OPTIMIZATION ? JIT_OPT_OUT_YES : JIT_OPT_OUT_NO;
}

enum jit_opt_out jit_opt_out_find(struct loaded_types *types, const struct method_desc *method)
{
    const struct loaded_type *type = loaded_types_find_nameless(types, method->table);
    const struct loaded_module *module = type ? loaded_types_module(types, type) : NULL;
    uint8_t flags[4];
    if (!module || !module->addr || types->layout->module.flags == LAYOUT_NONE ||
        !memory_pages_read(types->pages, module->addr + types->layout->module.flags, flags, sizeof flags))
        return JIT_OPT_OUT_UNKNOWN;
    return load_u32le(flags) & MODULE_OPTIMIZES ? of_metadata(types, method, module) : JIT_OPT_OUT_YES;
}
