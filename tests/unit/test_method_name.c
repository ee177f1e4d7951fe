#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "clr/method_name.h"

enum { SHOWN_MAX = 4096 };

static const struct {
    const char *raw, *type_params, *shown;
} cases[] = {
    /* plain types and members */
    { "App.Program::Main(class System.String[])", "", "App.Program.Main" },
    { "Program::Main()", "", "Program.Main" },
    { "A.B.C.Deep::Run(int32,class A.B.C.Deep)", "", "A.B.C.Deep.Run" },
    { "System.String::Concat(class System.String,class System.String)", "", "System.String.Concat" },
    { "App.Outer+Inner::Run()", "", "App.Outer.Inner.Run" },
    { "App.Outer+Inner+Most::Run()", "", "App.Outer.Inner.Most.Run" },
    { "App.Program::Main", "", "App.Program.Main" },
    { "App.Größe::Messen()", "", "App.Größe.Messen" },
    { "App.M::F(fnptr void(unsigned int8*),int32)", "", "App.M.F" },
    /* constructors, accessors, operators, events */
    { "App.Order::.ctor(int32)", "", "App.Order..ctor" },
    { "App.Order::.cctor()", "", "App.Order..cctor" },
    { "App.Order::get_Total()", "", "App.Order.Total.get" },
    { "App.Order::set_Total(int32)", "", "App.Order.Total.set" },
    { "App.Order::get_Item(int32)", "", "App.Order.Item.get" },
    { "App.Order::get_()", "", "App.Order.get_" },
    { "App.Order::add_Changed(class System.EventHandler)", "", "App.Order.Changed.add" },
    { "App.Order::remove_Changed(class System.EventHandler)", "", "App.Order.Changed.remove" },
    { "App.Money::op_Addition(value class App.Money,value class App.Money)", "", "App.Money.operator +" },
    { "App.Money::op_Equality(value class App.Money,value class App.Money)", "", "App.Money.operator ==" },
    { "App.Money::op_Implicit(int32)", "", "App.Money.implicit operator" },
    { "App.Money::op_Explicit(int32)", "", "App.Money.explicit operator" },
    { "App.Money::op_UnsignedRightShift(int32)", "", "App.Money.operator >>>" },
    { "App.Money::op_CheckedAdditionAssignment(int32)", "", "App.Money.operator checked +=" },
    { "App.Money::op_IncrementAssignment()", "", "App.Money.operator ++" },
    { "App.Money::op_NotKnown(int32)", "", "App.Money.op_NotKnown" },
    { "App.Order::<Clone>$()", "", "App.Order.Clone" },
    { "App.Order::PrintMembers(class System.Text.StringBuilder)", "", "App.Order.PrintMembers" },
    { "App.Order::Finalize()", "", "App.Order.Finalize" },
    /* generics */
    { "App.P::Foo[System.Int32](int32)", ";T", "App.P.Foo<int>" },
    { "App.P::Foo[System.__Canon](int32)", ";T", "App.P.Foo<T>" },
    { "App.P::Foo[System.__Canon]()", "", "App.P.Foo<_>" },
    { "App.P::Foo[App.Pair`2[System.Int32,System.__Canon],System.Byte[]](!!0)", ";A,B",
      "App.P.Foo<Pair<int,_>,byte[]>" },
    { "App.Box`1[System.__Canon]::Both[System.Int64](int32)", "T;U", "App.Box<T>.Both<long>" },
    { "App.P::<Main>g__Add|0_0[System.Int32](int32)", ";T", "App.P.Main.Add<int>" },
    { "App.P::App.IList<System.Int32[]>.Get[System.Double]()", "", "App.P.IList<int[]>.Get<double>" },
    { "App.P::Foo[System.Int32", "", "App.P.Foo[System.Int32" },
    { "App.P::[added-0x06000012]()", "", "App.P.[added-0x06000012]" },
    { "System.Collections.Generic.List`1[System.Int32]::Sort(class Comparison`1<!0>)", "T",
      "System.Collections.Generic.List<int>.Sort" },
    { "System.Collections.Generic.List`1[System.__Canon]::Sort()", "T",
      "System.Collections.Generic.List<T>.Sort" },
    { "System.Collections.Generic.List`1[System.__Canon]::Sort()", "",
      "System.Collections.Generic.List<_>.Sort" },
    { "System.Collections.Generic.List`1::Sort()", "T", "System.Collections.Generic.List<T>.Sort" },
    { "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int64]::FindValue(!0)", "TKey,TValue",
      "System.Collections.Generic.Dictionary<TKey,long>.FindValue" },
    { "System.Collections.Generic.Dictionary`2[System.__Canon,System.__Canon]::.ctor()", "TKey,TValue",
      "System.Collections.Generic.Dictionary<TKey,TValue>..ctor" },
    { "System.Collections.Generic.Dictionary`2+Enumerator[System.Int32,System.Byte]::MoveNext()",
      "TKey,TValue", "System.Collections.Generic.Dictionary<int,byte>.Enumerator.MoveNext" },
    { "App.Outer`1+Inner`1[System.Int32,System.__Canon]::Do(!0,!1,!!0)", "T,U;V",
      "App.Outer<int>.Inner<U>.Do<V>" },
    { "System.Linq.Enumerable::Select(class A,class B)", ";TSource,TResult",
      "System.Linq.Enumerable.Select<TSource,TResult>" },
    { "A.G`1[System.Collections.Generic.List`1[System.Collections.Generic.KeyValuePair`2[System.__Canon,"
      "System.Int32]]]"
      "::M()",
      "T", "A.G<List<KeyValuePair<_,int>>>.M" },
    { "A.G`1[System.Nullable`1[System.Double]]::M()", "T", "A.G<double?>.M" },
    { "A.G`1[System.ValueTuple`2[System.Int32,System.__Canon]]::M()", "T", "A.G<(int,_)>.M" },
    { "A.G`2[System.Byte[],System.Int32[,]]::M()", "T,U", "A.G<byte[],int[,]>.M" },
    { "A.G`1[System.Char*]::M()", "T", "A.G<char*>.M" },
    { "A.G`1[App.Outer+Inner]::M()", "T", "A.G<Outer.Inner>.M" },
    { "A.G`1[System.Object]::M()", "T", "A.G<object>.M" },
    { "System.Span`1[System.Char]::get_Length()", "T", "System.Span<char>.Length.get" },
    /* lambdas and local functions */
    { "App.Program+<>c::<Main>b__0_0(int32)", "", "App.Program.Main lambda" },
    { "App.Program+<>c::<Main>b__0_2(int32)", "", "App.Program.Main lambda #3" },
    { "App.Program+<>c__DisplayClass3_0::<Run>b__1()", "", "App.Program.Run lambda #2" },
    { "App.Program+<>c__DisplayClass3_0::.ctor()", "", "App.Program.closure..ctor" },
    { "App.Program+<>c::.cctor()", "", "App.Program.closure..cctor" },
    { "App.Program+<>c__13`1[System.__Canon]::<Make>b__13_0(!0)", "T", "App.Program.Make lambda" },
    { "App.G`1+<>c[System.__Canon]::<Make>b__13_0(!0)", "T", "App.G<T>.Make lambda" },
    { "App.Program::<Main>g__Local|0_1(int32)", "", "App.Program.Main.Local" },
    { "App.Program::<Main>g__Local|0_1(int32)", ";T", "App.Program.Main.Local<T>" },
    { "App.Program+<>c__DisplayClass0_0::<Main>g__Add|0(int32)", "", "App.Program.Main.Add" },
    { "App.Order::<.ctor>b__0_0()", "", "App.Order..ctor lambda" },
    { "App.Order+<>c::<get_Total>b__3_0()", "", "App.Order.Total.get lambda" },
    { "Program+<>c::<<Main>$>b__0_0(class A)", "", "Program.Main lambda" },
    { "Program::<<Main>$>g__Work|0_0()", "", "Program.Main.Work" },
    { "Program::<Main>$(class System.String[])", "", "Program.Main" },
    { "App.Program::<Main>(class System.String[])", "", "App.Program.Main (entry point)" },
    { "App.Program+<>c::<Main>b__0(int32)", "", "App.Program.Main lambda" },
    /* state machines */
    { "App.Store+<GetAsync>d__5::MoveNext()", "", "App.Store.GetAsync (async)" },
    { "App.Store+<GetAsync>d__5::MoveNext()", ";;async", "App.Store.GetAsync (async)" },
    { "App.Store+<Items>d__5::MoveNext()", ";;iterator", "App.Store.Items (iterator)" },
    { "App.Store+<Items>d__5::MoveNext()", "", "App.Store.Items (state machine)" },
    { "App.Store+<WorkAsync>d__3`1[System.__Canon]::MoveNext()", "T;;async",
      "App.Store.WorkAsync<T> (async)" },
    { "App.Store+<GetAsync>d__5::SetStateMachine(class IAsyncStateMachine)", ";;async",
      "App.Store.GetAsync.SetStateMachine (async)" },
    { "App.Store+<Items>d__5::System.Collections.IEnumerator.get_Current()", ";;iterator",
      "App.Store.Items.IEnumerator.Current.get (iterator)" },
    { "App.Store+<Items>d__5::<>m__Finally1()", ";;iterator", "App.Store.Items.finally (iterator)" },
    { "Program+<<Main>$>d__0::MoveNext()", ";;async", "Program.Main (async)" },
    { "App.Store::GetAsync(class System.Uri) [async thunk]", "", "App.Store.GetAsync (async thunk)" },
    { "App.Store`1[System.__Canon]::GetAsync [async thunk]", "T", "App.Store<T>.GetAsync (async thunk)" },
    { "App.Store+<<Run>b__4_0>d::MoveNext()", ";;async", "App.Store.Run lambda (async)" },
    { "App.Store+<>c+<<Run>b__4_1>d::MoveNext()", ";;async", "App.Store.Run lambda #2 (async)" },
    { "App.Store+<<Run>g__Step|4_0>d::MoveNext()", ";;async", "App.Store.Run.Step (async)" },
    { "App.Set`1+<System-Collections-Generic-IEnumerable<T>-GetEnumerator>d__1[System.__Canon]::MoveNext()",
      "T;;iterator", "App.Set<T>.IEnumerable<T>.GetEnumerator (iterator)" },
    { "App.Store+<App-IRead<System-Collections-Generic-List<System-String>>-GetAsync>d__1::MoveNext()",
      ";;async", "App.Store.IRead<List<string>>.GetAsync (async)" },
    { "App.Store+<>c+<<-ctor>b__1_0>d::MoveNext()", ";;async", "App.Store..ctor lambda (async)" },
    { "App.Store+<>c+<<-cctor>b__2_1>d::MoveNext()", ";;async", "App.Store..cctor lambda #2 (async)" },
    { "App.Store+<App-IRead-get_Rows>d__4::MoveNext()", ";;iterator", "App.Store.IRead.Rows.get (iterator)" },
    { "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.__Canon,App."
      "Store+"
      "<GetAsync>d__5]::MoveNext()",
      "TResult,TStateMachine",
      "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<TResult>.AsyncStateMachineBox<Store.GetAsync>."
      "MoveNext" },
    { "App.Box`1[App.Store+<>c+<<Run>b__4_1>d]::Go()", "T", "App.Box<Store.Run lambda #2>.Go" },
    { "App.Box`1[App.Store+<>c__DisplayClass4_0`1+<<Run>b__1>d[System.Int32]]::Go()", "T",
      "App.Box<Store.Run lambda #2>.Go" },
    { "App.Box`1[App.Store+<>c__DisplayClass4_0]::Go()", "T", "App.Box<Store.closure>.Go" },
    { "App.Form+VB$StateMachine_4_LoadAsync::MoveNext()", ";;async", "App.Form.LoadAsync (async)" },
    { "App.Form+VB$StateMachine_4_Rows`1[System.__Canon]::MoveNext()", "SM$T;;iterator",
      "App.Form.Rows<T> (iterator)" },
    /* explicit interface implementations */
    { "App.Sq::App.IShape.Area()", "", "App.Sq.IShape.Area" },
    { "App.Sq::System.IComparable<App.Sq>.CompareTo(class App.Sq)", "", "App.Sq.IComparable<Sq>.CompareTo" },
    { "App.D::System.Collections.Generic.IEnumerable<System.Collections.Generic.KeyValuePair<TKey,System."
      "Int32>>."
      "GetEnumerator()",
      "", "App.D.IEnumerable<KeyValuePair<TKey,int>>.GetEnumerator" },
    { "System.Int32::System.Numerics.IAdditionOperators<System.Int32,System.Int32,System.Int32>.op_Addition("
      "int32)",
      "", "System.Int32.IAdditionOperators<int,int,int>.operator +" },
    /* other compiler-made types, other languages */
    { "<>f__AnonymousType0`2[System.Int32,System.__Canon]::ToString()", "<A>j__TPar,<B>j__TPar",
      "AnonymousType0<int,B>.ToString" },
    { "<Program>F0A1B2__Helper::Run()", "", "Helper.Run" },
    { "<PrivateImplementationDetails>::ComputeStringHash(class System.String)", "",
      "<PrivateImplementationDetails>.ComputeStringHash" },
    { "<Module>::.cctor()", "", "<Module>..cctor" },
    { "App.Order::<>n__0()", "", "App.Order.base call" },
    { "App.Program+clo@12-3::Invoke(int32)", "", "App.Program.closure line 12" },
    { "App.Program+main@8::Invoke(int32)", "", "App.Program.main closure line 8" },
    { "App.Program+load@66::MoveNext()", "", "App.Program.load closure line 66 (async)" },
    { "App.Program+rows@74-1::GenerateNext(int32&)", "", "App.Program.rows closure line 74.GenerateNext" },
    { "App.Program::fib@5(int32)", "", "App.Program.fib closure line 5" },
    { "App.Program::deep@10-1[System.Int32](!!0)", "", "App.Program.deep closure line 10<int>" },
    { "App.Program::mail@home(int32)", "", "App.Program.mail@home" },
    { "App.Program::at@(int32)", "", "App.Program.at@" },
    { "App.Program+odd\\,name@7::Invoke(int32)", "", "App.Program.odd,name closure line 7" },
    { "App.Name::op_Like(class App.Name)", "", "App.Name.operator Like" },
    { "App.Parse::op_GreaterGreaterEquals(class A,class B)", ";T,U", "App.Parse.(>>=)<T,U>" },
    { "App.Parse::op_LessBarGreater(class A,class B)", "", "App.Parse.(<|>)" },
    { "App.Parse::op_LessOrMore(class A,class B)", "", "App.Parse.op_LessOrMore" },
    { "App.Parse::op_(class A)", "", "App.Parse.op_" },
    { "App.Form+_Closure$__::_Lambda$__3-0(int32)", "", "App.Form.lambda #1" },
    { "A.Odd\\,Name\\+X::M()", "", "A.Odd,Name+X.M" },
    /* code without metadata */
    { "dynamicClass::IL_STUB_PInvoke(int32)", "", "[P/Invoke stub]" },
    { "dynamicClass::IL_STUB_PInvoke(int32)", ";;libc!getenv", "[P/Invoke] libc!getenv" },
    { "dynamicClass::IL_STUB_ReversePInvoke(int64,int64)", ";;App.Program+Compare::Invoke(int,int)",
      "[reverse P/Invoke] App.Program.Compare.Invoke" },
    { "dynamicClass::IL_STUB_StoreTailCallArgs(int)", "", "[tail call stub]" },
    { "dynamicClass::IL_STUB_CallTailCallTarget(int)", "", "[tail call stub]" },
    { "dynamicClass::IL_STUB_Delegate_Invoke()", "", "[delegate invoke stub]" },
    { "dynamicClass::IL_STUB_bVirtualStaticMethodDispatch()", "", "[static virtual dispatch stub]" },
    { "dynamicClass::IL_STUB_ReversePInvoke(int)", "", "[reverse P/Invoke stub]" },
    { "dynamicClass::IL_STUB_MulticastDelegate_Invoke(int)", "", "[multicast delegate stub]" },
    { "dynamicClass::IL_STUB_New(int)", "", "New [IL stub]" },
    { "dynamicClass::InvokeStub_Order.set_Total(class System.Object)", "",
      "Order.Total.set [reflection invoke]" },
    { "dynamicClass::InvokeStub_List`1..ctor(class System.Object)", "", "List<_>..ctor [reflection invoke]" },
    { "dynamicClass::InvokeStub_Sq.App.IShape.Area(class System.Object)", "",
      "Sq.IShape.Area [reflection invoke]" },
    { "dynamicClass::InvokeStub_<>c.<Main>b__0_2(class System.Object)", "",
      "Main lambda #3 [reflection invoke]" },
    { "dynamicClass::InvokeStub_Run(class System.Object)", "", "Run [reflection invoke]" },
    { "dynamicClass::lambda_method12(class Closure)", "", "lambda_method12 [compiled expression]" },
    { "dynamicClass::Regex1_TryFindNextPossibleStartingPosition(class A)", "",
      "Regex1_TryFindNextPossibleStartingPosition [dynamic]" },
    /* not managed, or not of the runtime's form */
    { "", "", "" },
    { "main", "", "main" },
    { "__libc_start_main", "", "__libc_start_main" },
    { "WKS::gc_heap::mark_object_simple(unsigned char**)", "",
      "WKS::gc_heap::mark_object_simple(unsigned char**)" },
    { "std::vector<int, std::allocator<int> >::push_back(int const&)", "",
      "std::vector<int, std::allocator<int> >::push_back(int const&)" },
    { "void Foo::bar(int)", "", "void Foo::bar(int)" },
    { "Foo<int>::bar(int)", "", "Foo<int>::bar(int)" },
    { "(anonymous namespace)::f()", "", "(anonymous namespace)::f()" },
    { "[R2R delay-load thunk]", "", "[R2R delay-load thunk]" },
    { "[System.Linq]0x06000012", "", "[System.Linq]0x06000012" },
    { "::x", "", "::x" },
    { "x::", "", "x::" },
    { "A`1[::M()", "", "A`1[::M()" },
    /* control bytes never get out */
    { "App.P\x1b[31m::M()", "", "App.P?[31m::M()" },
    { "App.P\n::M\t()", "", "App.P?.M?" },
    { "a\xc2\x9bz\x7f", "", "a??z?" },
};

static const char *shown_of(const char *raw, const char *type_params, struct buffer *out)
{
    buffer_clear(out);
    method_name_show(span_of(raw, strlen(raw)), type_params, out);
    buffer_u8(out, 0);
    return (const char *)out->data;
}

static void test_shown(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, SHOWN_MAX);
    unsigned wrong = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *shown = shown_of(cases[i].raw, cases[i].type_params, &out);
        if (strcmp(shown, cases[i].shown) != 0) {
            print_error("%s (%s)\n  shown  %s\n  wanted %s\n", cases[i].raw, cases[i].type_params, shown,
                        cases[i].shown);
            wrong++;
        }
    }
    buffer_done(&out);
    assert_int_equal(wrong, 0);
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *type;
    } names[] = {
        { "App.Order::Total()", "App.Order" },
        { "App.Order::.ctor()", "App.Order" },
        { "App.Order::get_Item(int32)", "App.Order" },
        { "App.Sq::App.IShape<App.Sq>.get_Item(int32)", "App.Sq" },
        { "App.Outer`1+Inner[System.Int32]::M()", "App.Outer<int>.Inner" },
        { "App.Program+<GetAsync>d__5::MoveNext()", "App.Program" },
        { "App.Program+<>c::<Main>b__0_1(class System.String)", "App.Program" },
        { "App.Program::<Main>g__Add|0_0(int32)", "App.Program" },
        { "App.Calc+clo@12::Invoke(int32)", "App.Calc" },
        /* texts of another form have none that could be told */
        { "App.Order.Total", "" },
        { "dynamicClass::IL_STUB_PInvoke(int32)", "" },
        { "std::vector<int>::push_back(int)", "" },
        { "", "" },
    };
    struct buffer out;
    buffer_init(&out, SHOWN_MAX);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buffer_clear(&out);
        method_name_show_type(span_of(names[i].raw, strlen(names[i].raw)), "", &out);
        buffer_u8(&out, 0);
        assert_string_equal((const char *)out.data, names[i].type);
    }
    buffer_done(&out);
}

static void test_shown_twice(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, SHOWN_MAX);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(shown_of(cases[i].shown, cases[i].type_params, &out), cases[i].shown);
    buffer_done(&out);
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, SHOWN_MAX);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t size = 0; size < strlen(cases[i].raw); size++) {
            AUTO_FREE char *cut = strndup(cases[i].raw, size); /* so that a read behind the cut is seen */
            shown_of(cut, cases[i].type_params, &out);
            assert_false(out.failed);
        }
    buffer_done(&out);
}

static void test_out_of_room(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 8);
    const char *raw = "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]::FindValue(!0)";
    method_name_show(span_of(raw, strlen(raw)), "TKey,TValue", &out);
    assert_true(out.failed);
    buffer_done(&out);
}

static void test_is_managed(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        bool managed;
    } guesses[] = {
        { "App.Program::Main(class System.String[])", true },
        { "Program::<Main>$(class System.String[])", true },
        { "Program::Main(class System.String[])", true },
        { "G`1[System.Int32]::M()", true },
        { "dynamicClass::IL_STUB_PInvoke()", true },
        { "Thread::Run()", false },
        { "MethodDesc::DoPrestub(MethodTable*, CallerGCMode)", false },
        { "WKS::gc_heap::mark_object_simple(unsigned char**)", false },
        { "main", false },
        { "Foo<int>::bar(int)", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(guesses); i++)
        if (method_name_is_managed(span_of(guesses[i].raw, strlen(guesses[i].raw))) != guesses[i].managed)
            fail_msg("%s", guesses[i].raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shown),       cmocka_unit_test(test_types),
        cmocka_unit_test(test_shown_twice), cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_out_of_room), cmocka_unit_test(test_is_managed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
