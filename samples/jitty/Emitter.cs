using System;
using System.Globalization;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.Loader;

namespace Jitty
{
    /// <summary>Makes methods the runtime can free again, in the three ways there are.</summary>
    internal static class Emitter
    {
        private static readonly Type[] Parameters = { typeof(long) };
        private static readonly string OwnFile = FindOwnFile();

        /// <summary>A single-file program has no assembly file to load a second time.</summary>
        public static bool CanLoadPlugin => OwnFile.Length > 0;

        /// <summary>`Dyn_000123`, without a type.</summary>
        public static Func<long, long> DynamicMethod(int number)
        {
            var method = new DynamicMethod(Name("Dyn", number), typeof(long), Parameters, typeof(Emitter).Module, true);
            EmitLoop(method.GetILGenerator());
            return (Func<long, long>)method.CreateDelegate(typeof(Func<long, long>));
        }

        /// <summary>`Gen_000123.Spin` in an assembly of its own that can be collected.</summary>
        public static Func<long, long> CollectibleType(int number)
        {
            string name = Name("Gen", number);
            AssemblyBuilder assembly =
                AssemblyBuilder.DefineDynamicAssembly(new AssemblyName(name), AssemblyBuilderAccess.RunAndCollect);
            TypeBuilder type = assembly.DefineDynamicModule(name).DefineType(name, TypeAttributes.Public);
            EmitLoop(type.DefineMethod("Spin", MethodAttributes.Public | MethodAttributes.Static, typeof(long), Parameters)
                         .GetILGenerator());
            return ToDelegate(type.CreateTypeInfo()!.GetMethod("Spin")!);
        }

        /// <summary>`Jitty.Plugin.Spin` of this very file, loaded again into a collectible context.</summary>
        public static Func<long, long> Plugin(int number)
        {
            var context = new AssemblyLoadContext(Name("Plugin", number), isCollectible: true);
            Assembly assembly = context.LoadFromAssemblyPath(OwnFile);
            Func<long, long> spin = ToDelegate(assembly.GetType("Jitty.Plugin")!.GetMethod("Spin")!);
            context.Unload(); // goes when the delegate goes
            return spin;
        }

        private static Func<long, long> ToDelegate(MethodInfo method)
        {
            return (Func<long, long>)method.CreateDelegate(typeof(Func<long, long>));
        }

        private static string Name(string kind, int number)
        {
            return kind + "_" + number.ToString("D6", CultureInfo.InvariantCulture);
        }

        /// <summary>long x = 0; while (--n >= 0) x = x * 31 + n; return x;</summary>
        private static void EmitLoop(ILGenerator il)
        {
            Label test = il.DefineLabel();
            Label body = il.DefineLabel();
            il.DeclareLocal(typeof(long));
            il.Emit(OpCodes.Br, test);
            il.MarkLabel(body);
            il.Emit(OpCodes.Ldloc_0);
            il.Emit(OpCodes.Ldc_I8, 31L);
            il.Emit(OpCodes.Mul);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Stloc_0);
            il.MarkLabel(test);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I8, 1L);
            il.Emit(OpCodes.Sub);
            il.Emit(OpCodes.Starg_S, (byte)0);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I8, 0L);
            il.Emit(OpCodes.Bge, body);
            il.Emit(OpCodes.Ldloc_0);
            il.Emit(OpCodes.Ret);
        }

        private static string FindOwnFile()
        {
#pragma warning disable IL3000 // empty in a single-file program, which is what is asked here
            return typeof(Emitter).Assembly.Location;
#pragma warning restore IL3000
        }
    }
}
