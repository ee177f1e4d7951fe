/// Tasks of F# that wait for good, in chains that languages_test.py knows.
module Waits

open System
open System.Threading
open System.Threading.Tasks

let forever = TaskCompletionSource<int>()

let third () = task {
    do! Task.Delay 1
    let! a = Task.FromResult 3
    do! Task.Yield()
    let! b = forever.Task
    do! Task.Delay 2
    return a + b }

let later (i: int) = task {
    if i < 2 then do! Task.Delay 1 else do! Task.Delay 100000000
    return i }

let looped () = task {
    for i in 0 .. 3 do
        let! _ = later i
        ()
    return 1 }

let valued () = task { return! ValueTask<int>(forever.Task) }

let back () = backgroundTask {
    let! x = forever.Task
    return x }

let outer () = task {
    let! a = third ()
    let! b = looped ()
    return a + b }

let untyped () : Task = task {
    let! _ = outer ()
    () }

let running () = task {
    do! Task.Delay 1
    Thread.Sleep 100000000
    do! Task.Delay 1 }

let ended () = task {
    do! Task.Delay 1
    return 1 }

[<EntryPoint>]
let main _ =
    let all: Task list = [ untyped (); looped (); valued (); back (); running () ]
    ended().Wait()
    Thread.Sleep 500
    Console.WriteLine "ready"
    all[0].Wait()
    0
