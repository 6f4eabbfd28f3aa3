#include "properties/replays.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/library/table.hpp"
#include "properties/trial.hpp"

namespace softmax::properties {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

bool on_gpu(const Kernel& k) { return !k.machine().simulated(); }
bool in_16_bits(const Kernel& k) { return k.traits().types.size() > 1; }
bool divides(const Kernel& k) { return k.traits().temperature; }
bool leaves_it_to_others(const Kernel& k) { return k.traits().choice; }

std::string every_width(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t cols : widths(k, 4100)) t.uniform(t.way(3, cols), 0.75f);
  return t.verdict();
}

// Of independent numbers: lanes that have none of a row must not spoil it.
std::string every_narrow_width(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t cols : widths(k, 1023)) t.right(t.way(2, cols), some);
  return t.verdict();
}

// Views: input and output begin at other places between vectors, and no two rows alike.
std::string every_shift(const Kernel& k) {
  Trial t(k);
  const auto aligned = [&](int shift, DataType type) {
    return shift * std::max(k.traits().alignment / int(bytes_per_element(type)), 1);
  };
  for (int shift = 0; shift < 8; ++shift)
    for (const std::int64_t cols : {std::int64_t{333}, std::int64_t{1031}, std::int64_t{30064} + 57 * shift}) {
      std::vector<Case> cases = t.way(2, cols);
      for (Case& c : cases) {
        c.in_shift = aligned(shift, c.types.in), c.out_shift = aligned(3 * shift % 8, c.types.out);
        if (takes_gaps(k)) c.in_padding = 1 + shift % 3, c.out_padding = 5;
      }
      t.right(cases, some);
    }
  return t.verdict();
}

// Widths between the sizes that a kernel is built for.
template <int cols>
std::string every_size(const Kernel& k) {
  Trial t(k);
  t.uniform(t.ways(3, cols), -7);
  for (int more = -1; more <= 1; ++more) t.right(t.way(3, cols + more), some);
  return t.verdict();
}

std::string every_row_count(const Kernel& k) {
  Trial t(k);
  for (std::int64_t rows = 1; rows <= (exhaustive(k) ? 300 : 67); ++rows) t.uniform(t.way(rows, 5), 1);
  return t.verdict();
}

// What lies beside a row is no number, or a large one.
std::string poison_beside(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t cols : {1, 3, 5, 31, 33, 129, 257, 1000, 1027, 2049})
    for (const float poison : {1e30f, kNan, kInf})
      t.right(t.way(3, cols), [&](std::int64_t r, std::int64_t i) { return r == 1 ? some(r, i) : poison; });
  return t.verdict();
}

// No lane that has nothing to say may say 0.
std::string fewer_than_a_warp(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t cols : {1, 2, 3, 11, 17, 31, 32, 33, 65})
    t.uniform(t.ways(3, cols), cols % 4 == 1 ? -200 : -100);  // after which exp is 0, or all but that
  return t.verdict();
}

// Each position in turn holds the row's only large number, so whoever does not see it overflows or forgets it.
std::string spike_everywhere(const Kernel& k) {
  Trial t(k);
  const std::int64_t cols = 1027, step = exhaustive(k) ? 1 : 31, all = (cols + step - 1) / step;
  for (const float height : {20.0f, 200.0f})
    for (const Case& c : height == 20 ? t.way(all, cols) : t.ways(all, cols))
      for (std::int64_t first = 0; first < all; first += c.rows)
        t.right({c}, [&](std::int64_t r, std::int64_t i) {
          return i == std::min((first + r) * step + k.version() % step, cols - 1) ? height : 0;
        });
  return t.verdict();
}

// A maximum that rises with every element, or never again.
std::string sorted_rows(const Kernel& k) {
  Trial t(k);
  for (const Kind kind : {Kind::ascending, Kind::descending, Kind::creeping})
    for (const std::int64_t cols : {33, 257, 1027, 2053}) {
      std::vector<Case> cases = t.ways(2, cols);
      for (Case& c : cases) {
        c.kind = kind;
        const auto x = values(c);
        t.right({c}, [&](std::int64_t r, std::int64_t i) { return x[std::size_t(r * cols + i)]; });
      }
    }
  return t.verdict();
}

std::string longer_than_a_block(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t cols : {1025, 1536, 2047, 5000}) t.right(t.ways(2, cols), some);
  return t.verdict();
}

// Any seed of the maximum that is a number is above some row.
std::string below_any_sentinel(const Kernel& k) {
  Trial t(k);
  for (const float base : {-1e4f, -5e4f, -2.45e5f, -1e30f, -3e38f})
    for (const std::int64_t cols : {2, 33, 300, 1027})
      t.right(t.way(3, cols), [&](std::int64_t r, std::int64_t i) { return base + some(r, i); });
  return t.verdict();
}

std::string no_bare_exp(const Kernel& k) {
  Trial t(k);
  for (const float x : {-1000.0f, 1000.0f, 2000.0f}) {
    t.uniform(t.way(3, 512), x);
    t.right(t.ways(3, 300), [&](std::int64_t r, std::int64_t i) { return x + some(r, i); });
  }
  return t.verdict();
}

// NaN, whatever makes a row undefined and wherever it stands; the rows between are right.
float undefined(std::int64_t what, std::int64_t i, std::int64_t cols) {
  const bool first = i == 0, middle = i == cols / 2, last = i == cols - 1;
  switch (what % 7) {
    case 0: return -kInf;
    case 1: return first ? kInf : some(what, i);
    case 2: return last ? kNan : some(what, i);
    case 3: return middle ? kInf : -kInf;
    case 4: return kInf;
    case 5: return middle ? kNan : last ? kInf : some(what, i);
    default: return first ? -kNan : -kInf;
  }
}
std::string undefined_rows(const Kernel& k) {
  Trial t(k);
  for (std::int64_t what = 0; what < 7; ++what)
    for (const std::int64_t cols : {1, 2, 32, 33, 129, 1000, 1027})
      t.right(t.way(3, cols),
              [&](std::int64_t r, std::int64_t i) { return r % 2 == 0 ? undefined(what + r, i, cols) : some(r, i); });
  return t.verdict();
}

// On both sides of every width at which Auto, or a kernel with plans, goes another way.
std::vector<Case> boundaries(const Kernel& k, Trial& t) {
  constexpr std::int64_t kElements = 1 << 19;  // that a host can afford to judge
  const std::int64_t longest = exhaustive(k) ? 131073 : 33000;
  std::vector<Case> all;
  const auto add = [&](std::int64_t rows, std::int64_t cols, Types types) {
    if (cols > longest) return;
    for (Case c : t.way(rows, cols)) {
      c.types = types;
      if (k.unsupported(problem_of(c)).empty()) all.push_back(c);
    }
  };
  for (const std::int64_t cols : column_list()) add(2, cols, k.traits().types[0]);
  if (!leaves_it_to_others(k)) return all;
  for (const Rule& rule : table())
    for (int more = 0; more < 2; ++more)
      for (const Types types : k.traits().types)
        if (rule.fits(types, rule.rows, rule.cols) && (exhaustive(k) || (rule.rows <= 1 && types.in != DataType::fp16)))
          add(std::min({rule.rows, std::int64_t{300}, kElements / rule.cols + 1}), rule.cols + more, types);
  return all;
}

std::string one_answer_at_boundaries(const Kernel& k) {
  Trial t(k);
  const auto x = [](std::int64_t r, std::int64_t i) { return r % 2 == 0 ? -kInf : some(r, i); };
  for (const Case& c : boundaries(k, t)) t.right({c}, x);
  return t.verdict();
}

// Auto did what it says: the kernel that it names, under the plan that it names, launches as much and gives the same bits.
std::string does_what_it_says(const Kernel& k) {
  Trial t(k);
  for (const Case& c : boundaries(k, t))
    t.judge(c, [&]() -> std::string {
      const Choice said = k.choice(problem_of(c));
      if (!said.kernel || said.kernel == &k) return "it names nobody";
      Case named = c;
      named.plan = said.plan;
      const auto x = Trial::drawn(c, some);
      const auto y = run(k, c, x).y;
      const LaunchInfo launched = k.machine().last_launch();
      if (run(*said.kernel, named, x).y != y) return say("other bits than ", to_string(said));
      const LaunchInfo own = k.machine().last_launch();
      return launched.threads == own.threads && launched.blocks == own.blocks
                 ? ""
                 : say(launched.blocks, " blocks, but ", own.blocks, " of ", to_string(said));
    });
  return t.verdict();
}

// Sums of ones stall at 2048 in fp16, at 256 in bf16.
std::string long_sums_of_ones(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t cols : {256, 257, 512, 2048, 2049, 3000, 4096, 4099})
    for (int type = 0; type < k.traits().types.size(); ++type) t.uniform(t.way(1, cols), 0);
  return t.verdict();
}

// x / T must round in the same way where the maximum is found and where it is taken off.
std::string low_temperatures(const Kernel& k) {
  Trial t(k);
  for (const auto& [x, temperature] : {std::pair{1e3f, 1e-2f},
                                       {1e3f, 7e-3f},
                                       {-1e3f, 7e-3f},
                                       {1e6f, 1e-2f},
                                       {3e7f, 1e-2f},
                                       {2.1e7f, 7e-3f},
                                       {6.1e4f, 3e-7f}})
    for (const std::int64_t cols : {3, 100, 1027})
      for (const bool each_row : {false, true}) {
        std::vector<Case> cases = t.way(3, cols);
        for (Case& c : cases) c.temperature = temperature, c.each_row = each_row;
        t.uniform(cases, x);
      }
  return t.verdict();
}

// Nothing is launched, nothing written, and the next launch is none the worse.
std::string nothing_to_do(const Kernel& k) {
  Trial t(k);
  for (const auto& [rows, cols] : {std::pair{0, 5}, {5, 0}, {0, 0}, {1 << 20, 0}}) {
    Case c{.rows = rows, .cols = cols, .block = k.traits().blocks[0]};
    if (takes_gaps(k)) c.in_padding = 1, c.out_padding = 3;
    t.judge(c, [&] { return run(k, c, {}).trespass; });
    t.uniform(t.way(2, 5), 1);
  }
  return t.verdict();
}

std::string no_block_too_many(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t rows : {1, 7, 33, 300})
    for (const Case& c : t.ways(rows, 100))
      t.judge(c, [&]() -> std::string {
        run(k, c);
        const LaunchInfo launched = k.machine().last_launch();
        const Summation by = k.traits().summation;
        const std::int64_t lanes = k.traits().plan                                    ? threads_of(k, c) / c.rows
                                   : by == Summation::warp                            ? 32
                                   : by < Summation::warp && by != Summation::unknown ? 1
                                                                                      : c.block;
        const std::int64_t enough = (c.rows * lanes + launched.threads - 1) / launched.threads;
        return launched.blocks <= enough ? "" : say(launched.blocks, " blocks where ", enough, " will do");
      });
  return t.verdict();
}

// The same memory, and what the launch before left in it.
std::string nothing_stale(const Kernel& k) {
  Trial t(k);
  for (const std::int64_t cols : {5, 100, 1027})
    for (const Case& c : t.way(3, cols))
      t.judge(c, [&]() -> std::string {
        std::vector<std::vector<float>> x;
        for (std::int64_t from = 0; from < 3; ++from)
          x.push_back(Trial::drawn(c, [&](std::int64_t r, std::int64_t i) { return some(r + from, i); }));
        const auto out = run_in_turn(k, c, x);
        for (std::size_t i = 0; i < x.size(); ++i) {
          if (!out[i].trespass.empty()) return out[i].trespass;
          if (const auto why = wrong_row(k, c, x[i], out[i].y); !why.empty()) return say("launch ", i, ": ", why);
        }
        return {};
      });
  return t.verdict();
}

constexpr Replay by_tests(std::string_view issues, std::string_view fault, std::string_view tests) {
  return {issues, fault, nullptr, tests};
}
constexpr Replay beyond(std::string_view issues, std::string_view fault, std::string_view why) {
  return {issues, fault, nullptr, {}, nullptr, why};
}

constexpr Replay kReplays[] = {
    // Sizes.
    {"pytorch/pytorch#84144 pytorch/pytorch#181555 microsoft/onnxruntime#32299 microsoft/onnxruntime#32330",
     "an offset of 32 bits: zeros, garbage or a fault past 2^31 or 2^32 elements", past_32_bits,
     "Examples.far_rows Large.few_long_rows Large.rows_of_more_than_31_bits", on_gpu},
    by_tests("hpcaitech/FastFold#19 PaddlePaddle/Paddle#43107",
             "rows * columns overflow an int: many rows of some hundred columns", "Large.many_short_rows"),
    by_tests("pytorch/pytorch#52716 pytorch/pytorch#52713",
             "more rows than a grid has blocks, and slices of them that begin at the wrong output",
             "Examples.slices_of_rows"),
    by_tests("torch/cunn#150 torch/cunn#144 pytorch/pytorch#2080 NVIDIA/TensorRT#2021", "fails above 65535 rows",
             "Examples.many_rows SimtLaunchLimits.Blocks"),
    {"pytorch/pytorch#17256 apache/mxnet#17792 LBANN/lbann#1318 tensorflow/tensorflow#22259",
     "an empty matrix is an invalid launch", nothing_to_do,
     "Examples.nothing_to_do Library.nothing_to_do_is_a_success"},
    {"ORNL/HeCBench#72", "as many times too many blocks as a block has threads: right, and slow", no_block_too_many},

    // Alignment and tails.
    {"pytorch/pytorch#147284",
     "sums other than 1 at odd widths between 512 and 1024, where row 1 begins between vectors", every_width,
     "Examples.every_width law:constant_is_exact"},
    {"pytorch/pytorch#36485 pytorch/pytorch#38534 pytorch/pytorch#38535 pytorch/pytorch#56325 RL-Align/RL-Kernel#204",
     "vectors, bulk copies or one tensor's alignment where a view begins elsewhere", every_shift,
     "Examples.every_width"},
    {"flashinfer-ai/flashinfer#634 flashinfer-ai/flashinfer#636", "numbers of warps that are no multiple of four",
     every_size<3584>, "Examples.every_plan_is_full",
     [](const Kernel& k) { return k.version() != 13; }},  // whose rows are shorter
    {"microsoft/onnxruntime#17943", "reads past a row whose width lies between two that there are templates for",
     every_size<320>, "law:stays_inside"},
    {"tenstorrent/tt-metal#53208", "writes as many rows as fill whole tiles", every_row_count, "law:stays_inside"},
    {"flagos-ai/FlagGems#3716", "what lies beyond the row takes part in the reduction", poison_beside,
     "law:rows_are_independent"},

    // Races.
    {"ggml-org/llama.cpp#26385 NVIDIA/cutlass#3597 ROCm/composable_kernel#323 NervanaSystems/neon#171 NVIDIA/apex#1184 "
     "apache/tvm#2937",
     "the maximum's shared memory is the sum's, or the next row's, and no barrier between", many_launches,
     "law:order_does_not_matter Clean.under_every_schedule"},
    by_tests("JustVugg/colibri#1098 pytorch/pytorch#20182 pytorch/pytorch#83825 pytorch/pytorch#5276",
             "a barrier that looks redundant is taken out", "Barrier.belongs"),
    by_tests("xlite-dev/LeetCUDA#251", "an atomic and a fence taken for a barrier of the grid",
             "Examples.many_blocks_share_a_row GridGpu.two_streams_that_each_want_the_whole_card "
             "Grid.no_more_blocks_are_resident_than_allowed Large.few_long_rows"),
    by_tests("facebookexperimental/triton#1105", "a block of a cluster ends while others read its shared memory",
             "SimtCluster.ABlockThatHasEndedIsOutOfReach Clean.under_every_schedule"),

    // Reductions.
    {"m0at/rvllm#1 apache/tvm#12274", "lanes without an element say 0, and that is the maximum", fewer_than_a_warp,
     "SimtWarpMask.ReadingAnUnnamedLaneIsAFault"},
    {"ggml-org/llama.cpp#24451", "only some warps' maxima are looked at", spike_everywhere},
    {"KarhouTam/cuda-kernels#1 Infatoshi/cuda-course#10", "sums are taken against a maximum that is not the last one",
     sorted_rows},
    {"RussWong/CUDATutorial#6 xlite-dev/LeetCUDA#392", "wrong as soon as a row is longer than a block",
     longer_than_a_block},

    // NaN, infinities, sentinels.
    {"gabrieldemarmiesse/torch-mojo-backend#319", "idle lanes merge -inf - -inf: narrow rows are NaN",
     every_narrow_width},
    {"ml-explore/mlx#1467", "nothing but -inf is NaN at one width, 0 at the next", one_answer_at_boundaries},
    {"flashinfer-ai/flashinfer#4267 flashinfer-ai/flashinfer#4401 mit-han-lab/tinyengine#107 csarofeen/pytorch#1141 "
     "FluxML/NNlib.jl#43",
     "the maximum starts at some number: rows below it are 0", below_any_sentinel, "Examples.special_rows"},
    {"pytorch/pytorch#25110 pytorch/pytorch#55056 pytorch/pytorch#131060 tracel-ai/burn#4694 jax-ml/jax#21495 "
     "tenstorrent/tt-metal#56056 openvinotoolkit/openvino#33456 openvinotoolkit/openvino#35897",
     "a row of -inf, a NaN or a +inf gives numbers, or not the same everywhere", undefined_rows,
     "law:undefined_rows_are_nan Examples.special_rows"},
    {"FluxML/NNlib.jl#506 apache/singa#598 NVIDIA/FasterTransformer#43 ggml-org/llama.cpp#2665",
     "exp without a maximum overflows and underflows", no_bare_exp, "law:does_not_overflow"},

    // Precision.
    {"huggingface/candle#3727 sonos/tract#2586 sonos/tract#2587 pytorch/executorch#20089",
     "a sum in 16 bits stalls: 4096 zeros give rows of sum 2", long_sums_of_ones, "", in_16_bits},
    {"flashinfer-ai/flashinfer#5088 SlopDotCash/asi#2886",
     "x / T is rounded for the maximum and not where it is subtracted", low_temperatures, "law:temperature", divides},

    // Aliasing, stale data, dispatch.
    by_tests("ggml-org/ggml#1521", "wrong where the output is the input (of the backward pass)", "law:in_place"),
    {"linkedin/Liger-Kernel#1252 pytorch/pytorch#188247",
     "a path that nothing reaches, a threshold that is not the other's: who ran?", does_what_it_says,
     "Library.picks_what_a_result_names Library.another_table_is_noticed", leaves_it_to_others},
    by_tests("ROCm/MIOpen#2966 ggml-org/llama.cpp#10683", "the kernel of another type, or of another layout",
             "Examples.special_rows Library.a_rule_that_nobody_can_follow_passes_to_the_next law:matches_reference"),
    {"ScalingIntelligence/KernelBench#82", "stale memory, a changed input or work on another stream pass for an answer",
     nothing_stale,
     "law:answers_this_input law:stays_inside Lesson.has_a_head_and_registers_its_number "
     "BenchVerify.OutputOfAnEarlierLaunchDoesNotCount BenchVerify.KernelThatWritesToItsInputIsCaughtAndHarmsNoOther"},

    // Who judges kernels can be wrong too.
    by_tests("linkedin/Liger-Kernel#259 PaddleJitLab/CUDATutorial#69 nurl-lang/nurl#336 NervanaSystems/ngraph#2028",
             "a comparison that NaN passes", "BenchVerify.WrongOutputsGetAnErrorAndNoNumber Sabotage.is_caught"),
    by_tests("karpathy/llm.c#128", "a tolerance that zeros pass",
             "BenchVerify.WrongOutputsGetAnErrorAndNoNumber Sabotage.is_caught"),
    by_tests("emil-e/rapidcheck#139 emil-e/rapidcheck#287",
             "no special floats are drawn; a race is taken for a passing draw", "Examples.special_rows law:repeats"),
    by_tests(
        "karpathy/llm.c#851 pytorch/pytorch#64236",
        "times without a flush or a wait, of a kernel that is wrong while it is timed",
        "BenchVerify.KernelThatIsWrongOnlyWhileItIsTimedIsCaught BenchEngine.FasterThanTheCopyIsSuspectNotDropped"),
    by_tests("meta-pytorch/tritonbench#519 triton-lang/triton#10149 NVIDIA/TileGym#118 flashinfer-ai/flashinfer#2213",
             "a warm cache taken for memory",
             "BenchSession.FlushOfTheRunIsThatOfAllItTimes BenchSets.TogetherExceedTheCacheThreefoldAndAreNeverAlone"),
    by_tests("NVIDIA/nvbench#206 NVIDIA/nvbench#231 NVIDIA/nvbench#338",
             "throttled clocks and a cold start in the samples",
             "BenchEngine.LowClocksAreThrottled BenchStopRule.WarmUpIsTenLaunchesAndFiftyMilliseconds"),
    by_tests(
        "google/benchmark#179 google/benchmark#797 google/benchmark#1087 google/benchmark#1064 google/benchmark#333",
        "pauses that cost time, runs as long as the wrong clock says, or without end",
        "BenchStopRule.ShortKernelWithASlowFlushCostsUnderTwoSeconds BenchStopRule.ConstantSamplesStopAtFifty"),
    by_tests("google/benchmark#1061 google/benchmark#969", "bytes of one launch set against the time of all",
             "BenchRun.CountersAreCompleteFiniteAndRight"),
    beyond("google/benchmark#242 google/benchmark#1493 google/benchmark#2282", "the compiler removes what is timed",
           "what is timed is a launch, which no compiler removes"),
    beyond("ROCm/rocBLAS#1486", "times that depend on the data",
           "the bench's input is noise, or a file that the result names"),
    beyond("pytorch/pytorch#144645 Maharshi-Pandya/cudacodes#5 pytorch/pytorch#4893 triton-lang/triton#5712",
           "a cliff of time between two widths", "right answers, late: a matter of ./bench --sweep over C"),

    // No forward softmax.
    beyond("pytorch/pytorch#103501 sony/nnabla-ext-cuda#395", "of the backward pass", "there is none here"),
    beyond("pytorch/pytorch#38839 pytorch/pytorch#11752 ml-explore/mlx#4169",
           "log-softmax as x - (max + log(sum)) loses digits",
           "no kernel here writes logarithms; ReferenceLog.LogSoftmax holds the reference to it"),
};

}  // namespace

std::span<const Replay> replays() { return kReplays; }

std::string name(const Replay& r) {
  const std::string_view first = r.issues.substr(0, r.issues.find(' '));
  std::string text(first.substr(first.find('/') + 1));
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

const Replay& replay(std::string_view of) {
  for (const Replay& r : kReplays)
    if (name(r) == of) return r;
  throw std::out_of_range("no replay is called " + std::string(of));
}

}  // namespace softmax::properties
