/*
 * profile_options: which samples of a capture are looked at, and how names are spelled; shared by verbs.
 */
#ifndef CLRPERF_CLI_PROFILE_OPTIONS_H
#define CLRPERF_CLI_PROFILE_OPTIONS_H

#include "analyse/profile.h"
#include "cli/option.h"

struct profile_choice {
    const char *time, *event, *group;
    struct thread_filter who;
    struct option_list include, exclude;
    bool raw_names;
    bool may_be_none; /* it was just recorded: no samples are no failure */
};

extern const struct option_spec profile_choice_specs[];

/* Whether a capture can have samples: false of a recording of events alone. */
bool profile_choice_has_samples(const struct trace *t);
/* Once the capture is there: which of its events is looked at. Fails when it has none such; of a recording of
 * events alone without a hint. */
bool profile_choice_event(const struct profile_choice *choice, const struct trace *t,
                          struct profile_options *out, struct error *err);
/* Borrows from `choice`. */
bool profile_choice_options(const struct profile_choice *choice, struct profile_options *out,
                            struct error *err);
/* Says so when they leave none of the samples. */
void profile_choice_warn_empty(const struct profile_choice *choice, const struct profile *p,
                               const struct profile_options *options);

#endif
