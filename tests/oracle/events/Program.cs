using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Reflection;
using System.Text.Json;
using Microsoft.Diagnostics.Tracing;
using Microsoft.Diagnostics.Tracing.Etlx;
using Microsoft.Diagnostics.Tracing.Parsers;
using Microsoft.Diagnostics.Tracing.Parsers.Clr;

namespace Events
{
    /// <summary>
    /// events FILE.nettrace [PROVIDER...]: prints every event as TraceEvent decodes it, a JSON object a line:
    /// {"provider","event","id","version","ns","tid","activity","related_activity","fields":{...}}. "ns" counts from the start of the session. An
    /// enumeration is {"name","value"}, of arrays the first twenty items are there, bytes are {"bytes":n}, what TraceEvent fails to decode is {"failed":why}.
    /// events --stacks FILE.nettrace: {"provider","id","ns","tid","stack":[...]} of each event that has a stack, methods
    /// as MODULE!NAME, leaf first; what has no name is "?".
    /// The last line on stderr says how many there were, and how many were lost.
    /// </summary>
    public static class Program
    {
        private static readonly Stream Output = new BufferedStream(Console.OpenStandardOutput(), 1 << 20);
        private static readonly Utf8JsonWriter Json = new Utf8JsonWriter(Output, new JsonWriterOptions
        {
            SkipValidation = true,
            Encoder = System.Text.Encodings.Web.JavaScriptEncoder.UnsafeRelaxedJsonEscaping,
        });

        private const int ItemsMax = 20;
        private static readonly HashSet<string> Wanted = new HashSet<string>();
        private static long printed;

        public static int Main(string[] args)
        {
            if (args.Length < 1)
            {
                Console.Error.WriteLine("usage: events [--stacks] FILE.nettrace [PROVIDER...]");
                return 2;
            }

            bool stacks = args[0] == "--stacks";
            for (int i = stacks ? 2 : 1; i < args.Length; i++)
            {
                Wanted.Add(args[i]);
            }

            long lost = stacks ? PrintStacks(args[1]) : PrintEvents(args[0]);
            Output.Flush();
            Console.Error.WriteLine($"{printed} events, {lost} lost");
            return 0;
        }

        private static long PrintEvents(string path)
        {
            using var source = new EventPipeEventSource(path);
            source.Clr.All += Print;
            new ClrRundownTraceEventParser(source).All += Print;
            new ClrPrivateTraceEventParser(source).All += Print;
            new ClrStressTraceEventParser(source).All += Print;
            new Microsoft.Diagnostics.Tracing.EventPipe.SampleProfilerTraceEventParser(source).All += Print;
            source.Dynamic.All += Print;
            source.UnhandledEvents += Print;
            source.Process();
            return source.EventsLost;
        }

        private static void Print(TraceEvent data)
        {
            if (Wanted.Count > 0 && !Wanted.Contains(data.ProviderName))
            {
                return;
            }

            Begin(data);
            Json.WriteString("event", data.EventName);
            Json.WriteNumber("version", data.Version);
            Json.WriteNumber("bytes", data.EventDataLength);
            if (data.ActivityID != Guid.Empty)
            {
                Json.WriteString("activity", data.ActivityID.ToString());
            }

            if (data.RelatedActivityID != Guid.Empty)
            {
                Json.WriteString("related_activity", data.RelatedActivityID.ToString());
            }

            Json.WriteStartObject("fields");
            string[] names = Array.Empty<string>();
            try
            {
                names = data.PayloadNames ?? names;
            }
            catch (Exception error)
            {
                Json.WriteString("failed", error.GetType().Name);
            }

            for (int i = 0; i < names.Length; i++)
            {
                Json.WritePropertyName(names[i]);
                try
                {
                    Write(data.PayloadValue(i));
                }
                catch (Exception error)
                {
                    Json.WriteStartObject();
                    Json.WriteString("failed", error.GetType().Name);
                    Json.WriteEndObject();
                }
            }

            WriteItems(data);
            Json.WriteEndObject();
            End();
        }

        /// <summary>What events have many of: TraceEvent has methods for it, that take an index.</summary>
        private static void WriteItems(TraceEvent data)
        {
            switch (data)
            {
                case MethodILToNativeMapTraceData map:
                    WriteEach("ILOffsets", map.CountOfMapEntries, i => map.ILOffset(i));
                    WriteEach("NativeOffsets", map.CountOfMapEntries, i => map.NativeOffset(i));
                    return;
                case GCPerHeapHistoryTraceData heap:
                    WriteEach("GenData", heap.Count, i => heap.GenData((Gens)i));
                    return;
            }

            MethodInfo? values = data.GetType().GetMethod("Values", new[] { typeof(int) });
            if (values != null)
            {
                int count = Convert.ToInt32(data.GetType().GetProperty("Count")!.GetValue(data), CultureInfo.InvariantCulture);
                WriteEach("Values", count, i => values.Invoke(data, new object[] { i })!);
            }
        }

        private static void WriteEach(string name, int count, Func<int, object> item)
        {
            Json.WriteStartArray(name);
            for (int i = 0; i < Math.Min(count, ItemsMax); i++)
            {
                object value = item(i);
                if (value is IConvertible)
                {
                    Write(value);
                    continue;
                }

                Json.WriteStartObject();
                foreach (PropertyInfo property in value.GetType().GetProperties())
                {
                    Json.WritePropertyName(property.Name);
                    Write(property.GetValue(value));
                }

                Json.WriteEndObject();
            }

            Json.WriteEndArray();
        }

        private static long PrintStacks(string path)
        {
            string etlx = TraceLog.CreateFromEventPipeDataFile(path, Path.GetTempFileName());
            using var log = new TraceLog(etlx);
            foreach (TraceEvent data in log.Events)
            {
                TraceCallStack? stack = data.CallStack();
                if (stack == null)
                {
                    continue;
                }

                Begin(data);
                Json.WriteStartArray("stack");
                for (; stack != null; stack = stack.Caller)
                {
                    string method = stack.CodeAddress.FullMethodName;
                    Json.WriteStringValue(method.Length == 0 ? "?" : stack.CodeAddress.ModuleName + "!" + method);
                }

                Json.WriteEndArray();
                End();
            }

            long lost = log.EventsLost;
            log.Dispose();
            File.Delete(etlx);
            return lost;
        }

        private static void Begin(TraceEvent data)
        {
            Json.Reset(Output);
            Json.WriteStartObject();
            Json.WriteString("provider", data.ProviderName);
            Json.WriteNumber("id", (int)data.ID);
            Json.WriteNumber("ns", (long)Math.Round(data.TimeStampRelativeMSec * 1e6));
            Json.WriteNumber("tid", data.ThreadID);
        }

        private static void End()
        {
            Json.WriteEndObject();
            Json.Flush();
            Output.WriteByte((byte)'\n');
            printed++;
        }

        private static void Write(object? value)
        {
            switch (value)
            {
                case null:
                    Json.WriteNullValue();
                    break;
                case string text:
                    Json.WriteStringValue(text);
                    break;
                case bool yes:
                    Json.WriteBooleanValue(yes);
                    break;
                case double or float:
                    WriteFloat(Convert.ToDouble(value, CultureInfo.InvariantCulture), Convert.ToString(value, CultureInfo.InvariantCulture)!);
                    break;
                case Enum named:
                    Json.WriteStartObject();
                    Json.WriteString("name", named.ToString());
                    Json.WriteNumber("value", Convert.ToInt64(named, CultureInfo.InvariantCulture));
                    Json.WriteEndObject();
                    break;
                case Guid id:
                    Json.WriteStringValue(id.ToString());
                    break;
                case DateTime time:
                    Json.WriteStringValue(time.ToUniversalTime().ToString("yyyy-MM-ddTHH:mm:ss.fffffffZ", CultureInfo.InvariantCulture));
                    break;
                case byte[] bytes:
                    Json.WriteStartObject();
                    Json.WriteNumber("bytes", bytes.Length);
                    Json.WriteEndObject();
                    break;
                case char letter:
                    Json.WriteStringValue(letter.ToString());
                    break;
                case IDictionary<string, object> members:
                    WriteMembers(members);
                    break;
                case IEnumerable items:
                    Json.WriteStartArray();
                    foreach (object item in items)
                    {
                        Write(item);
                    }

                    Json.WriteEndArray();
                    break;
                default:
                    WriteNumber(value);
                    break;
            }
        }

        private static void WriteMembers(IDictionary<string, object> members)
        {
            Json.WriteStartObject();
            foreach (KeyValuePair<string, object> member in members)
            {
                Json.WritePropertyName(member.Key);
                Write(member.Value);
            }

            Json.WriteEndObject();
        }

        private static void WriteFloat(double value, string text)
        {
            if (double.IsFinite(value))
            {
                Json.WriteRawValue(text.Replace("E+", "e", StringComparison.Ordinal), true);
            }
            else
            {
                Json.WriteNullValue();
            }
        }

        private static void WriteNumber(object value)
        {
            if (value is ulong big)
            {
                Json.WriteNumberValue(big);
            }
            else if (value is IConvertible and (int or uint or long or short or ushort or byte or sbyte))
            {
                Json.WriteNumberValue(Convert.ToInt64(value, CultureInfo.InvariantCulture));
            }
            else
            {
                Json.WriteStringValue(value.ToString()); // an Address, an IntPtr
            }
        }
    }
}
