// Bucket bounds of latencies, seconds: one table for every histogram that has a quantile of time on a dashboard.
// Shape   ascending. From 0.1 ms to 10 s each bound is at most 4/3 of the one below, so that a quantile interpolated
//         within a bucket is off by less than a third; beyond, the bounds are vLLM's.
// Source  vLLM's dashboards select some bounds by their exact label: the table has all that its histograms of time have
//         (metrics/loggers.py), and those of prometheus_fastapi_instrumentator. The finer ones are ours.
#pragma once

namespace quire::observe {

inline constexpr double kLatencySeconds[] = {
    .0001, .000125, .00015, .0002, .00025, .0003, .0004, .0005, .0006, .0008,       // below a millisecond
    .001,  .00125,  .0015,  .002,  .0025,  .003,  .004,  .005,  .006,  .008,        //
    .01,   .0125,   .015,   .02,   .025,   .03,   .04,   .05,   .06,   .075,  .08,  //
    .1,    .125,    .15,    .2,    .25,    .3,    .4,    .5,    .6,    .75,   .8,   //
    1,     1.25,    1.5,    2,     2.5,    3,     4,     5,     6,     7.5,         //
    10,    15,      20,     30,    40,     50,    60,    80,    120,   160,   240,  // beyond
    480,   640,     960,    1920,  2560,   7680};

}  // namespace quire::observe
