#include "cli/core_notes.h"

#include "base/units.h"
#include "cli/message.h"

void core_notes_warn(const struct core_target *core, const struct error *no_methods)
{
    const char *path = "";
    size_t count;
    if (core->core.lost_bytes)
        message_warning("the dump is cut: %s of memory are missing at its end",
                        units_size(core->core.lost_bytes).text);
    if (!core->core.has_files)
        message_warning("the dump does not tell which files were mapped: no native function has a name");
    if ((count = core_target_images(core, CORE_IMAGE_MISSING, &path)) > 0)
        message_warning("%zu mapped file%s not here, so that code in %s has no names: %s%s", count,
                        count == 1 ? " is" : "s are", count == 1 ? "it" : "them", path,
                        count == 1 ? "" : ", ...");
    if ((count = core_target_images(core, CORE_IMAGE_OTHER, &path)) > 0)
        message_warning("%zu mapped file%s not the same any more and not used: %s%s", count,
                        count == 1 ? " is" : "s are", path, count == 1 ? "" : ", ...");
    if (no_methods && core->runtime == RUNTIME_CORECLR)
        message_warning("jitted methods have no names: %s", no_methods->what);
}
