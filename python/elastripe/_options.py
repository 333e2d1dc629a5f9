"""The options of the commands, for type checkers. Made by `tools/options.py`; not to be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any, Literal, TypedDict, Union

Text = str
Number = Union[int, float, str]
Size = Union[int, float, str]
Rate = Union[int, float, str]
Time = Union[timedelta, str]
File = Union[str, "PathLike[str]"]



class SimulateOptions(TypedDict, total=False):
    """Options of ``simulate``."""

    format: Text | None
    columns: Text | None
    skip_bad_lines: bool | None
    dev_mode: Literal['concatenate', 'ignore'] | None
    compact: bool | None
    head: Number | None
    writes_only: bool | None
    sectors: bool | None
    geometry: Text | None
    scheme: Text | None
    code: Text | None
    layout: Text | None
    consistency: Text | None
    log_devices: Number | None
    device_size: Size | None
    commit_every: Number | None
    sync: bool | None
    rewrites: Text | None
    cache_stripes: Number | None
    cache_slots: Number | None
    stripe_cache: Number | None
    groups: Number | None
    gc_threshold: Number | None
    gc_group: Text | None
    group_chunks: Number | None
    p_wait: Time | None
    recent_entries: Number | None
    midas_groups: Number | None
    glru_lists: Number | None
    glru_items: Number | None
    glru_insert: Number | None
    hot_thresholds: Number | None
    gc_unit: Number | None
    chunk_size: Size | None
    ssd: Text | None
    ssd_size: Size | None
    ssd_gc: Text | None
    mapping_cache: Size | None
    endurance: Text | None
    prefill: bool | None
    utilization: Number | None
    log_device: Text | None
    untimed: bool | None
    streams: Literal['none', 'parity', 'class', 'all'] | None
    stream_limit: Number | None
    parity_classes: Number | None
    slc_cap: Number | None
    stress_ratio: Number | None
    fill: bool | None
    queue_depth: Number | None
    timed: bool | None
    speed: Number | None
    buffers: Size | None
    seed: Number | None
    interval: Text | None
    series: File | None
    fail: Number | None
    fail_at: Text | None
    rebuild: Number | None
    batch: Number | None
    prefetch: Number | None
    check: bool | None
    compare: Union[Text, Sequence[Text]] | None
    baseline: Text | None
    own_terms: bool | None
    sweep: Union[Mapping[str, Sequence[Any]], str, Sequence[str]] | None
    jobs: Number | None


class PlaceOptions(TypedDict, total=False):
    """Options of ``place``."""

    format: Text | None
    columns: Text | None
    skip_bad_lines: bool | None
    dev_mode: Literal['concatenate', 'ignore'] | None
    compact: bool | None
    head: Number | None
    writes_only: bool | None
    sectors: bool | None
    groups: Number | None
    gc_threshold: Number | None
    gc_group: Text | None
    group_chunks: Number | None
    p_wait: Time | None
    recent_entries: Number | None
    midas_groups: Number | None
    glru_lists: Number | None
    glru_items: Number | None
    glru_insert: Number | None
    hot_thresholds: Number | None
    chunk_size: Size | None
    unit_size: Size | None
    spare: Number | None
    times: Literal['exact', 'stamps', 'unknown'] | None
    fill: bool | None
    passes: Number | None
    seed: Number | None


class ReplayOptions(TypedDict, total=False):
    """Options of ``replay``."""

    members: Union[File, Sequence[File]] | None
    overwrite: bool | None
    format: Text | None
    columns: Text | None
    skip_bad_lines: bool | None
    dev_mode: Literal['concatenate', 'ignore'] | None
    compact: bool | None
    head: Number | None
    writes_only: bool | None
    sectors: bool | None
    device: Literal['memory', 'null'] | None
    nbd: Text | None
    geometry: Text | None
    scheme: Text | None
    code: Text | None
    layout: Text | None
    consistency: Text | None
    log_devices: Number | None
    device_size: Size | None
    commit_every: Number | None
    sync: bool | None
    rewrites: Text | None
    cache_stripes: Number | None
    cache_slots: Number | None
    stripe_cache: Number | None
    placement: Text | None
    groups: Number | None
    hotness: Text | None
    gc: Text | None
    gc_threshold: Number | None
    gc_group: Text | None
    group_chunks: Number | None
    p_wait: Time | None
    recent_entries: Number | None
    midas_groups: Number | None
    glru_lists: Number | None
    glru_items: Number | None
    glru_insert: Number | None
    hot_thresholds: Number | None
    gc_unit: Number | None
    chunk_size: Size | None
    fill: bool | None
    queue_depth: Number | None
    timed: bool | None
    speed: Number | None
    verify: bool | None
    checkpoint: Literal['incremental', 'full'] | None
    interval: Text | None
    series: File | None
    seed: Number | None


class FlashOptions(TypedDict, total=False):
    """Options of ``flash``."""

    preset: Text | None
    logical_size: Size | None
    spare: Number | None
    blocks: Number | None
    pages_per_block: Number | None
    summary_pages: Number | None
    page_size: Size | None
    gc: Text | None
    gc_frontier: Literal['shared', 'separate'] | None
    gc_free: Number | None
    streams: Literal['none', 'parity', 'class', 'all'] | None
    stream_limit: Number | None
    parity_classes: Number | None
    mapping_cache: Size | None
    wear_levelling: Literal['off', 'dynamic', 'static'] | None
    slc_cap: Number | None
    stress_ratio: Number | None
    placement: Text | None
    victim: Text | None
    gc_group: Text | None
    garbage: Number | None
    times: Literal['exact', 'stamps'] | None
    hot_moves: Text | None
    utilization: Number | None
    warmup: Number | None
    drive_writes: Number | None
    parity_writes: Number | None
    parity_space: Number | None
    queue_depth: Number | None
    seed: Number | None
    check: bool | None
    interval: Text | None
    series: File | None


class ReliabilityOptions(TypedDict, total=False):
    """Options of ``reliability``."""

    geometry: Union[Text, Sequence[Text]] | None
    failure_rate: Text | None
    mttf: Time | None
    afr: Number | None
    shape: Number | None
    age: Time | None
    capacity: Size | None
    chunk_size: Size | None
    rebuild_rate: Union[Rate, Sequence[Rate]] | None
    repair_time: Union[Time, Sequence[Time]] | None
    repair_rate: Union[Text, Sequence[Text]] | None
    replace_after: Time | None
    repair_distribution: Literal['exponential', 'fixed'] | None
    repairs: Literal['one-by-one', 'all-at-once'] | None
    latent_rate: Text | None
    scrub_every: Time | None
    uber: Number | None
    after_failure: Number | None
    shock_rate: Text | None
    shock_share: Number | None
    log_devices: Number | None
    log_failure_rate: Text | None
    log_repair_time: Time | None
    uncommitted_share: Number | None
    uncommitted_size: Size | None
    alpha: Union[Number, Sequence[Number]] | None
    simulation: Union[File, Sequence[File]] | None
    written_per_day: Size | None
    erases_per_day: Number | None
    endurance: Number | None
    wear_shape: Number | None
    within: Time | None
    trials: Number | None
    seed: Number | None
    confidence: Number | None
