/*
 * member_name: a method's metadata name as people would write it.
 *
 * Compilers give lambdas, local functions, accessors and operators names of their own making; the
 * forms are in dotnet/roslyn docs and src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNames.cs.
 */
#ifndef CLRPERF_CLR_MEMBER_NAME_H
#define CLRPERF_CLR_MEMBER_NAME_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/cursor.h"

/*
 * Appends the shown form:
 *   get_Count                 Count.get           op_Addition              operator +
 *   <Main>b__0_0              Main lambda         <Main>b__0_2             Main lambda #3
 *   <Main>g__Add|0_1          Main.Add            <Main>$                  Main
 *   op_GreaterGreaterEquals   (>>=)                  fib@5                 fib closure line 5
 *   System.IDisposable.Dispose   IDisposable.Dispose
 * What is not of such a form is appended as it is.
 */
void member_name_show(struct span name, struct buffer *out);

/*
 * True for what F# names by a function inside another and the line that it begins in: "main@12-3". It is a
 * class's where it keeps variables of what is around it, "clo@12" when it has no name, else a method's.
 */
bool member_name_is_fsharp(struct span name);
/* Appends "main closure line 12"; false, with nothing appended, for another form. */
bool member_name_show_fsharp(struct span name, struct buffer *out);

/* True for `<Method>d__4`, `<<Main>b__0>d`, `VB$StateMachine_2_Method`: a state machine's own type. */
bool member_name_is_machine(struct span type_name);
/* Appends the shown form of the method that such a type belongs to. */
void member_name_show_machine(struct span type_name, struct buffer *out);

#endif
