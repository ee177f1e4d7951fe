/*
 * target_user: the user whose eyes the file system sees us with.
 *
 * As root we open a target's files as the target's own user, so that it cannot lead us to what it could not
 * reach itself. Changes the calling thread only.
 */
#ifndef CLRPERF_COLLECT_TARGET_USER_H
#define CLRPERF_COLLECT_TARGET_USER_H

#include <stdbool.h>
#include <sys/types.h>

struct own_user {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned */
    int group_count;
    bool switched;
};

/* From here on files are opened as `uid` with the one group `gid`; nothing happens unless we are root. */
struct own_user target_user_become(uid_t uid, gid_t gid);
/* Back to who we were. */
void target_user_leave(struct own_user *own);

#endif
