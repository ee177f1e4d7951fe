/*
 * awaited_name: what an async method waits for, in the words of .NET, from the type of the object.
 */
#ifndef CLRPERF_ANALYSE_AWAITED_NAME_H
#define CLRPERF_ANALYSE_AWAITED_NAME_H

/*
 * "Task.Delay", "SemaphoreSlim.WaitAsync", ... for a type as the runtime spells it; NULL for one that says
 * itself what it is.
 */
const char *awaited_name(const char *type);

#endif
