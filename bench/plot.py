"""A line chart as SVG: times over sizes, both on logarithmic scales."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 52, 48
COLORS = ("#1f6feb", "#d1242f", "#2da44e", "#8250df")


def line_chart(
    title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """`series` are points by name. Ticks of x are its values, those of y 1, 2 and 5 times powers of 10."""
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    ticks = [m * 10**e for e in range(-3, 10) for m in (1, 2, 5)]
    low = max((t for t in ticks if t <= min(ys)), default=min(ys))
    high = min((t for t in ticks if t >= max(ys)), default=max(ys))

    def at(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / xs[0]) / math.log(xs[-1] / xs[0])
        up = math.log(y / low) / math.log(high / low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{title}</text>',
    ]
    for tick in (t for t in ticks if low <= t <= high):
        _, y = at(xs[0], tick)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for x in xs[:: 1 if len(xs) < 9 else 2]:
        across, _ = at(x, low)
        out.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle" fill="#555">{x_name}</text>')
    out.append(f'<text x="{LEFT}" y="{TOP - 4}" fill="#555">{y_name}</text>')
    for color, (name, points) in zip(COLORS, series.items(), strict=False):
        places = [at(x, y) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in places]
        x, y = places[-1]
        out.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{color}">{name}</text>')
    return "\n".join([*out, "</svg>\n"])
