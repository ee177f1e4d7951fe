using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
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
