//! Replays, simulations, experiments and traces through the shipped binary. One binary for all of them: each
//! of its own would cost a link.

mod bench_threads;
mod elastic_replay;
mod flash_run;
mod lab;
mod parity_log_counts;
mod plots;
mod real_traces;
mod reliability;
mod replay_common;
mod replay_counts_match_closed_forms;
mod replay_figure_1_of_the_paper;
mod replay_reports_and_verifies;
mod series;
mod simulate;
mod stripe_cache_as_md;
mod trace_generate;
mod trace_info_and_convert;
