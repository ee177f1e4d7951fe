' Async methods of Visual Basic that wait for good, in chains that languages_test.py knows.
Imports System
Imports System.Threading
Imports System.Threading.Tasks

Module Waits
    ReadOnly forever As New TaskCompletionSource(Of Integer)

    Async Function Third() As Task(Of Integer)
        Await Task.Delay(1)
        Await Task.Yield()
        Dim a = Await forever.Task ' third
        Await Task.Delay(2)
        Return a
    End Function

    Async Function Outer() As Task
        Dim f = Async Function() Await Third() ' lambda
        Await f() ' outer
    End Function

    Async Function Running() As Task
        Await Task.Delay(1)
        Thread.Sleep(100000000)
        Await Task.Delay(1)
    End Function

    Async Function Ended() As Task
        Await Task.Delay(1)
    End Function

    Sub Main()
        Dim all = {Outer(), Running()}
        Ended().Wait()
        Thread.Sleep(500)
        Console.WriteLine("ready")
        all(0).Wait()
    End Sub
End Module
