/*
 * method_name: a managed method's name as people write it, made from the runtime's own spelling.
 *
 * The runtime's (--raw-names): "Ns.Type`1+Nested[Args]::Method[Args](parameters)"; the runtime's events leave
 * out what a generic method's own arguments are, the method's parameters' names stand for them. Shown:
 * without parameters, nesting with '.', type arguments in <> with C# keywords and without namespaces, and
 * what compilers generated traced back to the method in the source:
 *
 *   System.Collections.Generic.List`1[System.Int32]::Sort(...)   System.Collections.Generic.List<int>.Sort
 *   System.Array::IndexOf[System.Int32](...)                     System.Array.IndexOf<int>
 *   App.Program+<GetAsync>d__5::MoveNext()                       App.Program.GetAsync (async)
 *   App.Program+<>c::<Main>b__0_1(...)                           App.Program.Main lambda #2
 *   App.Program::<Main>g__Add|0_0(...)                           App.Program.Main.Add
 *   App.Order::.ctor()                                           App.Order..ctor  (and App.Order..cctor)
 *   App.Order::get_Total()                                       App.Order.Total.get
 *   dynamicClass::IL_STUB_PInvoke(...)                           [P/Invoke] libc!getenv
 *   App.Server::ReadAsync(...) [async thunk]                     App.Server.ReadAsync (async thunk)
 */
#ifndef CLRPERF_CLR_METHOD_NAME_H
#define CLRPERF_CLR_METHOD_NAME_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/cursor.h"

/*
 * Appends the shown form of a name whose code is managed (ReadyToRun, jitted or dynamic).
 * `type_params` is code_name.type_params, "TYPE;METHOD;KIND" (symbolize/managed_image.h), or "": its
 * names stand for System.__Canon, which without them is shown as '_'; without KIND a state machine
 * whose method's name does not end in "Async" is shown as "(state machine)". KIND of a stub without metadata
 * is what it serves: a method as the runtime spells it, or "libc!getenv". A text of another form is appended
 * unchanged. Control bytes come out as '?'. Showing a shown name changes nothing.
 */
void method_name_show(struct span raw, const char *type_params, struct buffer *out);

/*
 * Appends the beginning of the shown name that is the type's in the source: of a lambda, a state machine or a
 * local function the one around its method. Nothing for a text of another form.
 */
void method_name_show_type(struct span raw, const char *type_params, struct buffer *out);

/*
 * Of an asynchronous method that the runtime suspends itself (from .NET 11 on) there are two forms: one that
 * is awaited, and one that returns a Task, which is the runtime's own, calls the other, and is left out of
 * its stacks. Nothing in their names tells them apart: METHOD_ASYNC_THUNK is put behind that of the latter.
 */
#define METHOD_ASYNC_THUNK " [async thunk]"
bool method_name_is_async_thunk(struct span raw);

/* Whether a name is another one with a generic method's own arguments in it: "T::M[A](int32)", "T::M(int32)".
 */
bool method_name_is_instance(struct span raw, struct span of);

/*
 * For names of unknown origin: true when it has the runtime's form and is unlikely to be C++. A C++
 * member of a plain class, "Thread::Run()", cannot be told apart and counts as not managed.
 */
bool method_name_is_managed(struct span raw);

#endif
