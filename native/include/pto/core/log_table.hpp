// A logarithm without a division, for vectors. x = 2^e m; the range of m has 16 parts, each with an inverse c
// and t = -log c. Then log x = e ln 2 + t + log(1 + r) with r = m c - 1, |r| <= 1/32. Around 1, c = 1, t = 0.
//
// Rounded to float, this is `log` of math.hpp: all floats were compared, with the tail in Horner's order.
#pragma once

#include <cstdint>

namespace pto::detail::math {

/// The bits of the smallest m; m is below twice that value. 1 is in the middle of a part.
inline constexpr std::uint32_t kLogFirst = 0x3F340000;
inline constexpr double kLogOfTwo = 0x1.62e42fefa39efp-1;

struct LogPart {
  double c, t;
};
alignas(64) inline constexpr LogPart kLogParts[16] = {
    {0x1.642c8590b2164p+0, -0x1.522ae0738a3d7p-2}, {0x1.54fe1fcc3d5f6p+0, -0x1.25905f0637360p-2},
    {0x1.47ae147ae147bp+0, -0x1.f991c6cb3b37ap-3}, {0x1.3b13b13b13b14p+0, -0x1.a93ed3c8ad9e5p-3},
    {0x1.2f684bda12f68p+0, -0x1.5bf406b543db0p-3}, {0x1.2492492492492p+0, -0x1.1178e8227e47ap-3},
    {0x1.1a7b9611a7b96p+0, -0x1.9335e5d594988p-4}, {0x1.1111111111111p+0, -0x1.08598b59e3a06p-4},
    {0x1.0842108421084p+0, -0x1.0415d89e74440p-5}, {0x1.0000000000000p+0, 0x0.0000000000000p+0},
    {0x1.e1e1e1e1e1e1ep-1, 0x1.f0a30c01162a8p-5},  {0x1.c6b1a30081919p-1, 0x1.e6322cbc01df5p-4},
    {0x1.af286bca1af28p-1, 0x1.5ff3070a793d6p-3},  {0x1.999999999999ap-1, 0x1.c8ff7c79a9a20p-3},
    {0x1.8618618618618p-1, 0x1.1675cababa60fp-2},  {0x1.745d1745d1746p-1, 0x1.4618bc21c5ec2p-2}};

/// log(1 + r) = r + r^2 (kLogTail[0] + kLogTail[1] r + ..)
inline constexpr double kLogTail[7] = {-0x1.0000000000000p-1, 0x1.55555555872e4p-2,  -0x1.000000002cdd2p-2,
                                       0x1.99998d23ae84dp-3,  -0x1.55554a1e567b4p-3, 0x1.24f5f0d7c0917p-3,
                                       -0x1.0059b0f4702dbp-3};

}  // namespace pto::detail::math
