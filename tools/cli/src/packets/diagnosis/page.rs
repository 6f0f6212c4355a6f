//! What a diagnosis found: ten lines for people, fields for programs, and a drawing.

use echoless_lab::chart::{Axis, Chart, Scale, Series, page};
use echoless_records::failure::{Failure, without_controls};
use echoless_records::number::grouped;
use serde::Serialize;

use super::super::distances::{
    DistanceStats, Distances, packets_end, quantile, time_end, time_text,
};
use super::super::skew::Skew;
use super::super::tally::{CopyStats, counts_line};
use super::cause::Cause;
use super::findings::Findings;
use super::host;
use super::pairs::Diagnosis;

/// The shares of the copies of which the distance is shown.
const SHARES: [f64; 3] = [0.5, 0.99, 1.0];

/// The most pairs of VLANs that people are shown.
const SHOWN_VLANS: usize = 8;

/// About ten lines for people.
pub(super) fn lines(diagnosis: &Diagnosis<'_>, findings: &Findings) -> Vec<String> {
    let copies = findings.copies;
    let all = diagnosis.packets + diagnosis.unjudged;
    let packets = grouped(all);
    let mut lines = vec![match copies {
        0 if diagnosis.unjudged > 0 => {
            let judged = grouped(diagnosis.packets);
            format!("{packets} packets, no copies among the {judged} that were compared")
        }
        0 if diagnosis.unknown > 0 => {
            format!("{packets} packets, no copies as far as the diagnosis remembers")
        }
        0 => format!("{packets} packets, no copies"),
        _ => format!(
            "{packets} packets, {} of them copies ({:.2} %)",
            grouped(copies),
            copies as f64 * 100.0 / all as f64
        ),
    }];
    let cause =
        |(cause, n): &(Cause, u64)| format!("{} {}: {}", grouped(*n), cause.name(), cause.words());
    lines.extend(findings.causes.iter().map(cause));
    if copies > 0 {
        lines.push(quantiles_line(&findings.tally.distances));
        lines.extend(findings.tally.lines());
        if !diagnosis.config.interfaces.is_empty() {
            lines.push(host::names_line(&diagnosis.config.interfaces));
        }
        if !diagnosis.config.by_xdp {
            lines.extend(host::lines(&diagnosis.config.interfaces));
        }
        lines.extend(diagnosis.skew.iter().flat_map(Skew::lines));
    }
    if findings.by_vlans.keys().any(|vlans| *vlans != (None, None)) {
        let name = |vlan: Option<u16>| vlan.map_or("none".into(), |vlan| vlan.to_string());
        let mut entries: Vec<_> = findings.by_vlans.iter().collect();
        entries.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let shown = entries.len().min(SHOWN_VLANS);
        let others = entries.split_off(shown).into_iter().map(|(_, n)| n).sum();
        let entries = entries.into_iter();
        let entries =
            entries.map(|((from, to), n)| (format!("{} to {}", name(*from), name(*to)), *n));
        lines.push(counts_line(
            "VLANs",
            entries.chain([("others".into(), others)]),
        ));
    }
    lines.extend(repeats_line(&findings.repeats));
    for doubtful in &findings.doubtful {
        lines.push(format!("doubtful, too little proof: {}", cause(doubtful)));
    }
    if findings.removed_repeats > 0 {
        lines.push(format!(
            "doubtful: {} of the equal packets that were sent again are inside the window",
            grouped(findings.removed_repeats)
        ));
    }
    if diagnosis.unknown > 0 {
        lines.push(format!(
            "{} equal packets are further apart than the diagnosis remembers, or of too many kinds",
            grouped(diagnosis.unknown)
        ));
    }
    if diagnosis.unjudged > 0 {
        lines.push(format!(
            "{} packets were not compared, as they are before the latest one by more than the \
             window: sort them first (reordercap)",
            grouped(diagnosis.unjudged)
        ));
    }
    if findings.is_unordered {
        let unordered = "the packets are not in the order of time, so the window must be longer than \
                         the distances: sort them first (reordercap)";
        lines.push(unordered.into());
    }
    let command = command(diagnosis, findings).map(|command| without_controls(&command));
    lines.extend(command.map(|command| format!("to remove the copies: {command}")));
    lines
}

/// How far half of the copies are from their originals, and nearly all, and all.
fn quantiles_line(distances: &Distances) -> String {
    let parts = SHARES.map(|share| {
        let time = quantile(&distances.by_time, share).and_then(time_end);
        let packets = quantile(&distances.by_packets, share).and_then(packets_end);
        let distance = match (time, packets.unwrap_or(u64::MAX)) {
            (Some(time), packets) => format!("{}, {}", time_text(time), grouped(packets)),
            (None, packets) => grouped(packets),
        };
        match share {
            1.0 => format!("all within {distance}"),
            _ => format!("{} % within {distance}", share * 100.0),
        }
    });
    format!(
        "distance from the original (time, packets): {}",
        parts.join("; ")
    )
}

/// The equal packets that are no copies, and how near they are.
fn repeats_line(repeats: &Distances) -> Option<String> {
    let all = repeats.without_time + repeats.by_time.iter().sum::<u64>();
    let first = repeats.by_time.iter().position(|n| *n > 0);
    let least = first.and_then(|bucket| time_end(bucket.checked_sub(1)?));
    let apart = least.map_or(String::new(), |it| {
        format!("{} or more apart, or ", time_text(it))
    });
    (all > 0).then(|| {
        let all = grouped(all);
        format!(
            "{all} equal packets are no copies, but were sent again by their hosts or cut: \
             {apart}few of their flow"
        )
    })
}

/// The command that removes the copies.
fn command(diagnosis: &Diagnosis<'_>, findings: &Findings) -> Option<String> {
    let config = diagnosis.config;
    let format = if diagnosis.is_pcap { "pcap" } else { "pcapng" };
    let is_input = |name: &String| config.inputs.iter().any(|input| input.ends_with(name));
    let mut names = (0..).map(|number| format!("clean{}.{format}", "-2".repeat(number)));
    let output = names.find(|name| !is_input(name)).unwrap_or_default();
    let words = ["echoless", "packets"].map(str::to_owned).into_iter();
    let words = words.chain(findings.options.clone());
    let words = words
        .chain(config.options.clone())
        .chain(config.inputs.clone());
    let words = words.chain(["-o".to_owned(), output]);
    (findings.copies > 0).then(|| shell_words::join(words))
}

/// The same for programs.
pub(super) fn stats(diagnosis: &Diagnosis<'_>, findings: &Findings) -> DiagnosisStats {
    let distances = &findings.tally.distances;
    DiagnosisStats {
        packets: diagnosis.packets + diagnosis.unjudged,
        unjudged: diagnosis.unjudged,
        copies: findings.copies,
        causes: causes(&findings.causes),
        within: SHARES
            .into_iter()
            .map(|share| Within {
                share,
                seconds: quantile(&distances.by_time, share)
                    .and_then(time_end)
                    .map(|end| end as f64 / 1e9),
                packets: quantile(&distances.by_packets, share).and_then(packets_end),
            })
            .collect(),
        by: findings.tally.stats(),
        vlans: (findings.by_vlans.iter())
            .map(|((original, copy), duplicates)| VlanCount {
                original: *original,
                copy: *copy,
                duplicates: *duplicates,
            })
            .collect(),
        repeats: findings.repeats.stats(),
        removed_repeats: findings.removed_repeats,
        is_unordered: findings.is_unordered,
        doubtful: causes(&findings.doubtful),
        unknown: diagnosis.unknown,
        options: findings.options.clone(),
        command: command(diagnosis, findings),
    }
}

fn causes(causes: &[(Cause, u64)]) -> Vec<CauseCount> {
    let counts = causes.iter().map(|(cause, duplicates)| CauseCount {
        cause: cause.name(),
        duplicates: *duplicates,
    });
    counts.collect()
}

/// The diagnosis in the JSON of `--stats`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DiagnosisStats {
    packets: u64,
    unjudged: u64,
    copies: u64,
    causes: Vec<CauseCount>,
    within: Vec<Within>,
    #[serde(flatten)]
    by: CopyStats,
    vlans: Vec<VlanCount>,
    repeats: DistanceStats,
    removed_repeats: u64,
    is_unordered: bool,
    doubtful: Vec<CauseCount>,
    unknown: u64,
    options: Vec<String>,
    command: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct CauseCount {
    cause: &'static str,
    duplicates: u64,
}

/// The distance within which this share of the copies is.
#[derive(Debug, Clone, Serialize)]
struct Within {
    share: f64,
    seconds: Option<f64>,
    packets: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
struct VlanCount {
    original: Option<u16>,
    copy: Option<u16>,
    duplicates: u64,
}

/// The lines, and below them charts of both distances.
pub(super) fn svg(lines: &[String], findings: &Findings) -> Result<String, Failure> {
    let (copies, repeats) = (&findings.tally.distances, &findings.repeats);
    let points = |counts: &[u64], end: fn(usize) -> Option<u64>, unit: f64| {
        let counted = counts.iter().enumerate().filter(|(_, n)| **n > 0);
        let points =
            counted.filter_map(|(bucket, n)| Some((end(bucket)? as f64 / unit, *n as f64)));
        points.collect::<Vec<_>>()
    };
    let chart =
        |title: &str, label: &str, scale, points: &dyn Fn(&Distances) -> Vec<(f64, f64)>| Chart {
            title: title.into(),
            x: Axis::new(label, scale),
            y: Axis::new("packets", Scale::Log10),
            series: vec![
                Series::line("copies", points(copies)),
                Series::line("sent again", points(repeats)),
            ],
        };
    let charts = [
        chart(
            "Equal packets by distance in time",
            "at most so many microseconds",
            Scale::Log10,
            &|it| points(&it.by_time, time_end, 1e3),
        ),
        chart(
            "Equal packets by distance in packets",
            "at most so many packets",
            Scale::Log2,
            &|it| points(&it.by_packets, packets_end, 1.0),
        ),
    ];
    page(lines, &charts).map_err(|error| Failure::file("--svg")(std::io::Error::other(error)))
}
