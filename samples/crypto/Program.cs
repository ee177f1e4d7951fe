using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using Samples;

namespace Crypto
{
    /// <summary>
    /// What servers ask of OpenSSL: signatures, records of TLS, hashes of passwords. Its inner loops are written by hand, and
    /// keep their frames in their own ways.
    /// </summary>
    public static class Program
    {
        private static readonly byte[] Data = new byte[64 << 10];
        private static readonly byte[] Sealed = new byte[64 << 10];
        private static readonly byte[] Key = new byte[32];

        public static void Main(string[] args)
        {
            using var run = new Run("crypto", args);
            new Random(1).NextBytes(Data);
            using RSA rsa = RSA.Create(2048);
            using ECDsa curve = ECDsa.Create(ECCurve.NamedCurves.nistP256);
            using var gcm = new AesGcm(Key, 16);
            using Aes aes = Aes.Create();
            var phases = new (string Name, Action<long> Do)[]
            {
                ("SignRsa", until => SignRsa(rsa, until)), ("SignCurve", until => SignCurve(curve, until)),
                ("Seal", until => Seal(gcm, until)), ("Encrypt", until => Encrypt(aes, until)), ("Hash256", Hash256),
                ("Hash512", Hash512), ("Password", Password), ("MakeKey", MakeKey),
            };
            var told = new Phase[phases.Length];
            for (int i = 0; i < phases.Length; i++)
                told[i] = run.Truth.AddPhase(phases[i].Name, "Crypto.Program." + phases[i].Name);
            run.AnswerInput();
            run.Ready();
            while (!run.Over)
                for (int i = 0; i < phases.Length && !run.Over; i++)
                    run.Slice(told[i], phases[i].Do);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void SignRsa(RSA rsa, long until)
        {
            do
            {
                rsa.SignData(Key, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
            } while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void SignCurve(ECDsa curve, long until)
        {
            do
            {
                curve.SignData(Key, HashAlgorithmName.SHA256);
            } while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Seal(AesGcm gcm, long until)
        {
            do
            {
                gcm.Encrypt(Key.AsSpan(0, 12), Data, Sealed, new byte[16]);
            } while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Encrypt(Aes aes, long until)
        {
            do
            {
                aes.EncryptCbc(Data, new byte[16]);
            } while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Hash256(long until)
        {
            do
            {
                SHA256.HashData(Data);
            } while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Hash512(long until)
        {
            do
            {
                SHA512.HashData(Data);
            } while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Password(long until)
        {
            do
            {
                Rfc2898DeriveBytes.Pbkdf2(Key, Key, 1000, HashAlgorithmName.SHA512, 32);
            } while (Stopwatch.GetTimestamp() < until);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void MakeKey(long until)
        {
            do
            {
                using RSA rsa = RSA.Create(1024);
                rsa.ExportParameters(false);
            } while (Stopwatch.GetTimestamp() < until);
        }
    }
}
