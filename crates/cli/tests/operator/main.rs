//! What operators and their clients see of the shipped binary: arrays, servers, signals, messages; and what
//! needs their rig, such as sweeps that are interrupted. One binary for all of them: each of its own would
//! cost a link.

mod arrays_are_found;
mod arrays_grow;
mod arrays_grow_in_service;
mod arrays_have_names;
mod arrays_of_before;
mod bad_input_changes_nothing;
mod closed_output;
mod common;
mod connections_are_guarded;
mod control_socket_survives;
mod create_makes_and_refuses;
mod devices_fail_and_are_replaced;
mod devices_lack_room_or_hang;
mod devices_say_why_they_failed;
mod disks_of_the_kernel;
mod elastic_files;
mod every_request_is_answered;
mod files_in_service_stay;
mod first_hour;
mod freed_space_is_discarded;
mod inspect_decodes_damage;
mod interrupted_in_order;
mod keys_are_kept;
mod keys_outlive_kills;
mod manual_and_completions;
mod members_are_succeeded;
mod members_come_back;
mod metrics_are_told;
mod more_log_devices;
mod options_mean_something;
mod ordeal_canaries;
mod output_files;
mod page_shows_the_array;
mod provenance;
mod read_only_writes_nothing;
mod readme;
mod recovery_refuses_older_states;
mod redundancy_is_not_given_up_unasked;
mod scrub_covers_metadata;
mod serve_run_and_stop;
mod servers_tell;
mod shards_are_one_array;
mod signals_end_in_order;
mod spares_are_shared;
mod spares_that_cannot_help;
mod status_says_what_it_saw;
mod stop_minds_clients;
mod sweeps;
#[cfg(feature = "vhost-user")]
mod virtual_machines_see_a_disk;
mod words_that_operators_use;
mod work_goes_on_when_nobody_asks;
mod work_is_steered;
mod writes_are_not_torn;
