"""What was measured, as Markdown that also reads well on a terminal."""

import datetime
import os
import platform


def table(headings, rows):
    cells = [list(map(str, row)) for row in [headings, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    # Names to the left, figures to the right.
    line = lambda row: "| " + " | ".join(
        cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))) + " |"
    rule = "|" + "|".join("-" * (width + 2) if column == 0 else "-" * (width + 1) + ":" for column, width in enumerate(widths)) + "|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])


def offline_table(measured):
    rows = [(row.name, f"{row.cost.cpu * 1000:.1f}", row.most_cpu or "–", f"{row.cost.wall * 1000:.1f}", f"{row.cost.memory:.1f}",
             row.most_memory or "–", "OVER" if row.is_over() else "") for row in measured]
    return table(["command", "CPU ms", "limit", "wall ms", "RSS MiB", "limit", ""], rows)


def cost_table(measured):
    rows = [(row.name, f"{row.cost.cpu * 1000:.1f}", f"{row.cost.wall * 1000:.1f}", f"{row.cost.memory:.1f}") for row in measured]
    return table(["command", "CPU ms", "wall ms", "RSS MiB"], rows)


def lives_table(passages):
    rows = [(f"{row.who} {row.what}", row.stacks, row.calls, f"{row.calls / row.stacks:.1f}", f"{row.cost.cpu * 1000:.0f}",
             f"{row.cost.cpu * 1000 / row.stacks:.0f}", f"{row.cost.wall:.1f}", f"{row.in_stacks:.1f}", f"{row.rest:.1f}",
             f"{row.rest / row.stacks:.2f}", f"{row.cost.memory:.0f}") for row in passages]
    return table(["", "stacks", "calls", "a stack", "CPU ms", "a stack", "wall s", "in stacks", "rest", "a stack", "RSS MiB"], rows)


def list_table(listed):
    rows = [(f"{row.clusters} clusters", row.stacks, row.groups, row.calls, f"{row.cost.cpu * 1000:.0f}", f"{row.cost.wall:.1f}",
             row.most_seconds, f"{row.cost.memory:.0f}", "OVER" if row.is_over() else "") for row in listed]
    return table(["", "stacks", "Auto Scaling groups", "calls", "CPU ms", "wall s", "limit", "RSS MiB", ""], rows)


def growth_table(growths):
    rows = []
    for growth in growths:
        few, many = growth.steps()
        first, second, third = growth.sizes
        rows.append((growth.what, f"{growth.factor:.1f}×", f"{few:.2f} {growth.unit}", f"{many:.2f} {growth.unit}",
                     "WORSE" if growth.is_worse_than_linear() else "no worse than linear"))
    return table([f"pools: {first}, {second}, {third}", f"{first} to {third}", f"a pool, {first} to {second}",
                  f"a pool, {second} to {third}", ""], rows)


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB of memory, {platform.system()} {platform.release().partition('-')[0]}, "
            f"load {load:.1f} at the end")


def today():
    return datetime.date.today().isoformat()
