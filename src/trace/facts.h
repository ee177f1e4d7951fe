/*
 * facts: the keys of what is known about a capture as a whole.
 *
 * Values are texts; numbers are decimal. Each is listed in docs/TRACE_FORMAT.md. Append only.
 */
#ifndef CLRPERF_TRACE_FACTS_H
#define CLRPERF_TRACE_FACTS_H

#define FACT_EVENT "event" /* "cpu-clock" */
#define FACT_COUNTED_EVENT                                                                                   \
    "counted_event" /* of SAMPLE_EVENT samples, which weigh how many: "context-switches" */
#define FACT_EVENTS_LEFT_OUT                                                                                 \
    "events_left_out" /* of an imported file, how many samples: "cycles (4), faults (2)" */
#define FACT_WALL_EVENT           "wall_event" /* of SAMPLE_WALL samples, which weigh nanoseconds: "thread-time" */
#define FACT_WALL_STATES          "wall_states"   /* nanoseconds of those by state: "managed 10 native 20" */
#define FACT_UNIT                 "unit"          /* of sample weights: "ns", "count", "bytes", "samples" */
#define FACT_RATE_HZ              "rate_hz"       /* samples per second and CPU */
#define FACT_KERNEL_FRAMES        "kernel_frames" /* "yes" or "no" */
#define FACT_STARTED_MONOTONIC_NS "started_monotonic_ns"
#define FACT_STARTED_REALTIME_NS  "started_realtime_ns" /* since 1970 */
#define FACT_DURATION_NS          "duration_ns"
#define FACT_FRAMES_FOUND         "frames_found"         /* how many in each way: "leaf 10 eh_frame 20" */
#define FACT_COUNTED_FRAMES_FOUND "counted_frames_found" /* the same, of samples of `counted_event` */
#define FACT_SELF_CPU_NS          "self_cpu_ns"          /* CPU time the recorder used */
#define FACT_SELF_PEAK_RSS        "self_peak_rss_bytes"
#define FACT_STACKS               "stacks" /* how callers were found: "unwound", "frame pointers" */
#define FACT_TOOL                 "tool"   /* who recorded: "perf 6.1.0" */
#define FACT_FORMAT               "format" /* of an imported file: "perf.data", "perf script", "folded" */
#define FACT_HOST                 "host"
#define FACT_KERNEL               "kernel"       /* its release */
#define FACT_ARCH                 "arch"         /* as uname says: "x86_64" */
#define FACT_CPU                  "cpu"          /* model name */
#define FACT_CPUS                 "cpus"         /* online */
#define FACT_COMMAND_LINE         "command_line" /* of the recorder */
#define FACT_NOTES                "notes"        /* what a reader of the capture should know, "; " between */

#endif
