using System;
using System.Diagnostics.Tracing;
using Samples;

namespace Sources
{
    public enum Colour
    {
        Red = 1,
        Green = 2,
        Blue = 4,
    }

    /// <summary>What a self-describing event has in it: its properties are the event's fields.</summary>
    [EventData]
    public sealed class Order
    {
        public bool Paid { get; set; }

        public int Number { get; set; }

        public decimal Price { get; set; }

        public char Letter { get; set; }

        public string Item { get; set; } = "";

        public Address To { get; set; } = new Address();

        public bool Last { get; set; }
    }

    [EventData]
    public sealed class Address
    {
        public string Street { get; set; } = "";

        public short House { get; set; }

        public bool Far { get; set; }
    }

    /// <summary>Events whose fields are known from one number, so that a reader of them can be checked field by field.</summary>
    [EventSource(Name = "Samples-Sources")]
    public sealed class Source : EventSource
    {
        public static readonly Source Log = new Source();

        private Source()
            : base(EventSourceSettings.EtwManifestEventFormat)
        {
        }

        [Event(1)]
        public void Everything(int i, bool yes, byte tiny, short small, long big, ulong unsigned, float ratio, double exact,
            string text, Guid id, DateTime when, Colour colour, bool no)
        {
            WriteEvent(1, i, yes, tiny, small, big, unsigned, ratio, exact, text, id, when, colour, no);
        }

        [Event(2)]
        public void RequestStart(int i, string path)
        {
            WriteEvent(2, i, path);
        }

        [Event(3)]
        public void RequestStop(int i)
        {
            WriteEvent(3, i);
        }

        [Event(4)]
        public void Nothing()
        {
            WriteEvent(4);
        }

        [Event(5, Opcode = EventOpcode.Send, Task = (EventTask)7)]
        public void Handover(int i)
        {
            WriteEvent(5, i);
        }
    }

    /// <summary>Sends a hundred of each event in a round; a count is `NAME`, the number of them.</summary>
    public static class Program
    {
        private const int EventsPerRound = 100;
        private static readonly EventSource Own = new EventSource("Samples-Self");

        public static void Main(string[] args)
        {
            using var run = new Run("sources", args);
            // made now: one that is made while somebody listens may miss what is sent at once
            GC.KeepAlive(Source.Log);
            GC.KeepAlive(Own);
            run.Ready();
            run.Rounds(args, () => Round(run.Truth));
        }

        private static void Round(Truth truth)
        {
            for (int i = 0; i < EventsPerRound; i++)
            {
                Described(i);
                SelfDescribing(i);
                truth.Count("sent");
            }
        }

        private static void Described(int i)
        {
            DateTime when = new DateTime(2026, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddTicks(i);
            Source.Log.Everything(i, i % 2 == 0, (byte)i, (short)(i - 50), (long)i << 33, ulong.MaxValue - (ulong)i, i + 0.1f,
                i + 0.1, "text " + i, new Guid(i, 2, 3, new byte[8]), when, (Colour)(1 << i % 3), i % 3 == 0);
            Source.Log.RequestStart(i, "/page/" + i);
            Source.Log.RequestStop(i);
            Source.Log.Nothing();
            Source.Log.Handover(i);
        }

        private static void SelfDescribing(int i)
        {
            Own.Write("Order", new Order
            {
                Paid = i % 2 == 0,
                Number = i,
                Price = i + 0.25m,
                Letter = (char)('a' + i % 26),
                Item = "item " + i + " \u20ac",
                To = new Address { Street = "street " + i, House = (short)-i, Far = i % 3 == 0 },
                Last = i % 5 == 0,
            });
        }
    }
}
