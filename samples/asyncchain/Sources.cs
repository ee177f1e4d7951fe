using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

namespace AsyncChain
{
    /// <summary>What a chain can end in: a semaphore, a channel, a socket, a timer.</summary>
    internal static class Sources
    {
        private static readonly SemaphoreSlim gate = new SemaphoreSlim(0);
        private static readonly Channel<int> channel = Channel.CreateUnbounded<int>();
        private static readonly Channel<int> full = Channel.CreateBounded<int>(1);
        private static readonly Socket socket = new Socket(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);
        private static readonly PeriodicTimer timer = new PeriodicTimer(TimeSpan.FromHours(10));
        private static readonly List<Task> started = new List<Task>();

        public static void Start()
        {
            socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            for (int i = 0; i < 3; i++)
                started.Add(SemaphoreAsync());
            started.Add(ChannelAsync());
            started.Add(SocketAsync());
            started.Add(TimerAsync());
            started.Add(FullAsync());
            started.Add(SenderAsync());
            started.Add(AsTaskAsync());
#if NET9_0_OR_GREATER
            started.Add(EachEndAsync());
#endif
        }

        private static async Task FullAsync()
        {
            full.Writer.TryWrite(1);
            await Lines.At("FullAsync", full.Writer.WriteAsync(2));
        }

        /// <summary>A Task that the framework makes of an operation that is none.</summary>
        private static async Task SenderAsync()
        {
            await Lines.At("SenderAsync", socket.ReceiveFromAsync(new byte[16].AsMemory(), SocketFlags.None,
                new IPEndPoint(IPAddress.Any, 0)).AsTask());
        }

        /// <summary>The same of a method.</summary>
        private static async Task AsTaskAsync()
        {
            await Lines.At("AsTaskAsync", BoxedAsync().AsTask());
        }

#if NET9_0_OR_GREATER
        private static async Task EachEndAsync()
        {
            await foreach (Task ended in Lines.At("EachEndAsync", Task.WhenEach(SemaphoreAsync(), SemaphoreAsync())))
                await ended;
        }
#endif

        [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
        private static async ValueTask<int> BoxedAsync()
        {
            await Lines.At("BoxedAsync", gate.WaitAsync());
            return 1;
        }

        private static async Task SemaphoreAsync()
        {
            await Lines.At("SemaphoreAsync", gate.WaitAsync()).ConfigureAwait(false);
        }

        private static async Task ChannelAsync()
        {
            await Lines.At("ChannelAsync", channel.Reader.ReadAsync());
        }

        private static async Task SocketAsync()
        {
            await Lines.At("SocketAsync", socket.ReceiveAsync(new byte[16].AsMemory(), SocketFlags.None));
        }

        private static async Task TimerAsync()
        {
            await Lines.At("TimerAsync", timer.WaitForNextTickAsync());
        }
    }
}
