#include "collect/target_user.h"

#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* The C library's setgroups() changes all threads. */
static void set_groups(int count, const gid_t *groups)
{
    syscall(SYS_setgroups, count, groups);
}

struct own_user target_user_become(uid_t uid, gid_t gid)
{
    struct own_user own = { .switched = geteuid() == 0 && (uid != 0 || gid != 0) };
    if (!own.switched)
        return own;
    int count = getgroups(0, NULL);
    own.groups = mem_alloc(count > 0 ? (size_t)count : 1, sizeof *own.groups);
    own.group_count = count > 0 ? getgroups(count, own.groups) : 0;
    set_groups(1, &gid);
    own.gid = (gid_t)setfsgid(gid);
    own.uid = (uid_t)setfsuid(uid);
    return own;
}

void target_user_leave(struct own_user *own)
{
    if (!own->switched)
        return;
    setfsuid(own->uid);
    setfsgid(own->gid);
    set_groups(own->group_count, own->groups);
    free(own->groups);
    *own = (struct own_user){ 0 };
}
