//! The command as its users run it: bytes in, bytes out, messages and exit codes.

mod arrivals;
mod bad_input;
mod ber;
mod ber_call_records;
mod ber_containers;
mod ber_files;
mod codecs;
mod comments;
mod comparisons;
mod compressed_inputs;
mod compressed_outputs;
mod csv_backslash;
mod damaged_inputs;
mod defaults;
mod eval;
mod eval_files;
mod exact;
mod examples;
mod filters;
mod follow;
#[cfg(unix)]
mod following;
mod formats;
mod generated;
mod grouped_lines;
mod guide;
mod hash_key;
mod in_place;
mod joined_times;
mod json;
mod json_lists;
#[cfg(unix)]
mod keep;
mod keys;
#[cfg(unix)]
mod kills;
mod known;
mod known_states;
mod leaving;
#[cfg(target_os = "linux")]
mod memory;
mod metrics;
mod misleading_names;
mod named_filters;
#[cfg(target_os = "linux")]
mod network;
mod outputs;
mod packets;
mod packets_diagnose;
mod packets_diagnose_doubts;
mod packets_editcap;
mod packets_files;
mod packets_generated;
mod packets_joined;
mod packets_links;
#[cfg(target_os = "linux")]
mod packets_live;
mod packets_model;
mod packets_outputs;
mod packets_partial;
#[cfg(target_os = "linux")]
mod packets_soak;
mod packets_support;
mod packets_tag;
mod packets_tshark;
#[cfg(target_os = "linux")]
mod packets_xdp;
mod plan;
mod real_data;
mod records;
mod recurring_times;
mod refused;
mod rejects;
mod repeated;
mod reports;
mod run;
mod seen_files;
#[cfg(unix)]
mod signals;
mod state;
mod state_edges;
#[cfg(unix)]
mod state_failed_runs;
#[cfg(unix)]
mod state_inputs;
mod state_kills;
#[cfg(unix)]
mod state_outputs;
#[cfg(unix)]
mod state_outputs_meanwhile;
mod streams;
mod tags;
mod text_starts;
mod threads;
mod top_keys;
mod window_options;
mod window_summary;
mod window_times;
mod windows;
