//! Which plots a benchmark's rows give.

use std::collections::BTreeMap;

use super::plot::{Axis, Drawn, Plot, Scale, Series};
use super::rows::{Row, Rows};

/// A plot, and the end of the name of its file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) slug: String,
    pub(super) plot: Plot,
}

/// The plots of a benchmark, by its name; none for a benchmark that has only rows.
pub(super) fn figures(benchmark: &str, rows: &Rows) -> Vec<Figure> {
    let mut figures = match benchmark {
        "limit" => vec![speed_by_size(rows)],
        "peers" => by_group(rows, &["memory_mib"], speed_against_fpr),
        "scaling" => by_group(rows, &["memory_mib"], speed_by_threads),
        "paper" => by_group(
            rows,
            &[
                "paper",
                "table",
                "stream_len",
                "distinct_percent",
                "memory_mib",
            ],
            frontier,
        ),
        _ => Vec::new(),
    };
    figures.retain(|figure| {
        figure
            .plot
            .series
            .iter()
            .any(|series| !series.points.is_empty())
    });
    figures
}

/// The columns of a group with their values, and its rows.
type Group<'a> = (Vec<(&'a str, &'a str)>, Vec<Row<'a>>);

/// One figure for each combination of values that the columns have; columns that are not there do not count.
fn by_group(rows: &Rows, columns: &[&str], figure: fn(&str, &[Row]) -> Plot) -> Vec<Figure> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows.iter() {
        let values: Vec<(&str, &str)> = columns
            .iter()
            .map(|column| (*column, row.text(column)))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        match groups.iter_mut().find(|(group, _)| *group == values) {
            Some((_, members)) => members.push(row),
            None => groups.push((values, vec![row])),
        }
    }
    groups
        .iter()
        .map(|(values, members)| {
            let slug: Vec<String> = values.iter().map(|(_, value)| slug(value)).collect();
            let title: Vec<String> = values
                .iter()
                .map(|(column, value)| match *column {
                    "memory_mib" => format!("{value} MiB"),
                    "distinct_percent" => format!("{value} % distinct"),
                    "stream_len" => format!("{value} keys"),
                    column => format!("{column} {value}"),
                })
                .collect();
            Figure {
                slug: slug.join("-"),
                plot: figure(&title.join(", "), members),
            }
        })
        .collect()
}

fn slug(text: &str) -> String {
    let keep = |character: char| character.is_ascii_alphanumeric() || character == '.';
    let words: Vec<&str> = text.split(|character| !keep(character)).collect();
    words.join("-").to_lowercase()
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis {
        label: label.into(),
        scale,
    }
}

/// The rate in millions of keys a second.
fn millions(row: Row) -> Option<f64> {
    row.number("keys_per_second").map(|rate| rate / 1e6)
}

/// The rows under one name, in the order in which names appear, and each one's points by their place.
fn series<'a>(
    rows: impl Iterator<Item = Row<'a>>,
    name: impl Fn(Row) -> String,
    drawn: Drawn,
    point: impl Fn(Row) -> Option<(f64, f64)>,
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let (name, Some(point)) = (name(row), point(row)) else {
            continue;
        };
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => all.push(Series {
                name,
                drawn,
                points: vec![point],
                predicted: Vec::new(),
            }),
        }
    }
    for series in &mut all {
        if drawn != Drawn::Points {
            series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    all
}

/// Each form on its fastest kernel, and the machine's limit.
fn speed_by_size(rows: &Rows) -> Figure {
    let point = |row: Row| Some((row.number("memory_mib")?, millions(row)?));
    let limit = series(
        rows.iter().filter(|row| row.text("name") != "machine"),
        |_| "random line reads".into(),
        Drawn::Line,
        |row| {
            let limit = row.number("limit_keys_per_second")?;
            Some((row.number("memory_mib")?, limit / 1e6))
        },
    );
    // Of the kernels of a form, the one that is fastest over all sizes.
    let mut totals: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let filters = || rows.iter().filter(|row| row.text("name") != "machine");
    for row in filters() {
        let key = (row.text("form"), row.text("kernel"));
        *totals.entry(key).or_default() += millions(row).unwrap_or(0.0);
    }
    let is_fastest = |row: &Row| {
        let own = totals.get(&(row.text("form"), row.text("kernel")));
        let mut others = totals.iter();
        own.is_some_and(|own| {
            others.all(|((form, _), total)| *form != row.text("form") || total <= own)
        })
    };
    let forms = series(
        filters().filter(is_fastest),
        |row| named(&[row.text("form"), row.text("kernel")]),
        Drawn::Line,
        point,
    );
    let mut limit = limit;
    for line in &mut limit {
        line.points.dedup();
    }
    Figure {
        slug: "speed".into(),
        plot: Plot {
            title: "Speed by size, against the machine's limit".into(),
            x: axis("memory, MiB", Scale::Doublings),
            y: axis("million keys per second", Scale::Linear),
            series: limit.into_iter().chain(forms).collect(),
        },
    }
}

/// The words that are not empty, with commas.
fn named(words: &[&str]) -> String {
    let words = words.iter().filter(|word| !word.is_empty());
    words.copied().collect::<Vec<_>>().join(", ")
}

fn speed_against_fpr(group: &str, rows: &[Row]) -> Plot {
    Plot {
        title: format!("Speed against false positive rate, {group}"),
        x: axis(
            "false positive rate after the stream (exact ones on the left edge)",
            Scale::Decades,
        ),
        y: axis("million keys per second", Scale::Decades),
        series: series(
            rows.iter().copied(),
            |row| named(&[row.text("name"), row.text("form")]),
            Drawn::Points,
            |row| {
                let rate = row.number("fpr_full").or_else(|| row.number("fpr"))?;
                Some((rate, millions(row)?))
            },
        ),
    }
}

fn speed_by_threads(group: &str, rows: &[Row]) -> Plot {
    let name = |row: Row| match row.text("name") {
        // Of a mesh the form says only how many nodes it has.
        "mesh" => "mesh".to_owned(),
        name => named(&[name, row.text("form"), row.text("stream")]),
    };
    let point = |row: Row| Some((row.number("threads")?, millions(row)?));
    let is_predicted = |row: &&Row| row.text("kind") == "prediction";
    let measured = rows.iter().filter(|row| !is_predicted(row)).copied();
    let predicted = rows.iter().filter(is_predicted).copied();
    let mut all = series(measured, name, Drawn::Line, point);
    for prediction in series(predicted, name, Drawn::Line, point) {
        match all.iter_mut().find(|series| series.name == prediction.name) {
            Some(series) => series.predicted = prediction.points,
            None => all.push(Series {
                predicted: prediction.points,
                points: Vec::new(),
                ..prediction
            }),
        }
    }
    Plot {
        title: format!("Speed by threads, {group}"),
        x: axis("threads (hollow points are predictions)", Scale::Doublings),
        y: axis("million keys per second", Scale::Decades),
        series: all,
    }
}

fn frontier(group: &str, rows: &[Row]) -> Plot {
    Plot {
        title: named(&["Misses against false positives", group]),
        x: axis(
            "measured false positive rate (0 on the left edge)",
            Scale::Decades,
        ),
        y: axis(
            "measured false negative rate (0 on the lower edge)",
            Scale::Decades,
        ),
        series: series(
            rows.iter().copied(),
            |row| named(&[row.text("algorithm"), row.text("form")]),
            Drawn::Points,
            |row| Some((row.number("measured_fpr")?, row.number("measured_fnr")?)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(benchmark: &str, csv: &str) -> Vec<Figure> {
        figures(benchmark, &Rows::parse(csv).unwrap())
    }

    #[test]
    fn limit_shows_each_form_on_its_fastest_kernel() {
        let figures = of(
            "limit",
            "name,form,kernel,memory_mib,keys_per_second,limit_keys_per_second\n\
             machine,random line reads,,1,9e8,9e8\n\
             filter,fifo,scalar,1,1e8,1e9\n\
             filter,fifo,avx2,64,2e8,3e8\n\
             filter,fifo,avx2,1,5e8,1e9\n",
        );
        let series = &figures[0].plot.series;
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["random line reads", "fifo, avx2"]);
        assert_eq!(series[0].points, [(1.0, 1000.0), (64.0, 300.0)]);
        assert_eq!(series[1].points, [(1.0, 500.0), (64.0, 200.0)]);
    }

    #[test]
    fn peers_have_a_figure_for_each_size() {
        let figures = of(
            "peers",
            "name,form,memory_mib,keys_per_second,fpr_full\n\
             a,x,1,1e8,1e-3\nb,,1,2e8,0\na,x,64,5e7,1e-3\n",
        );
        let slugs: Vec<&str> = figures.iter().map(|figure| figure.slug.as_str()).collect();
        assert_eq!(slugs, ["1", "64"]);
        assert_eq!(figures[0].plot.series.len(), 2);
        assert_eq!(figures[0].plot.series[1].name, "b");
        assert_eq!(figures[0].plot.series[1].points, [(0.0, 200.0)]);
        assert!(figures[1].plot.title.ends_with("64 MiB"));
    }

    #[test]
    fn predictions_are_drawn_apart() {
        let figures = of(
            "scaling",
            "name,form,stream,threads,memory_mib,keys_per_second,kind\n\
             mesh,2 nodes,distinct,2,64,2e8,measured\nmesh,1 nodes,distinct,1,64,1e8,measured\n\
             mesh,2 nodes,distinct,8,64,8e8,prediction\n",
        );
        let series = &figures[0].plot.series;
        assert_eq!(series[0].points, [(1.0, 100.0), (2.0, 200.0)]);
        assert_eq!(series[0].predicted, [(8.0, 800.0)]);
        assert_eq!(series.len(), 1);
    }

    #[test]
    fn the_frontier_has_a_figure_for_each_stream_and_memory() {
        let figures = of(
            "paper",
            "table,stream_len,distinct_percent,memory_mib,algorithm,form,measured_fpr,measured_fnr\n\
             3,1000,60,0.5,rsbf,,1e-2,1e-3\n3,1000,60,0.5,sbf,line,2e-2,0\n3,1000,15,0.5,sbf,,1,1\n",
        );
        assert_eq!(figures.len(), 2);
        assert_eq!(figures[0].slug, "3-1000-60-0.5");
        assert_eq!(figures[0].plot.series[1].name, "sbf, line");
        assert_eq!(figures[0].plot.series[1].points, [(2e-2, 0.0)]);
    }

    #[test]
    fn other_benchmarks_and_empty_rows_have_none() {
        assert!(of("tools", "name\nsort\n").is_empty());
        assert!(of("limit", "name,form\n").is_empty());
    }
}
