//! Which plots a benchmark's rows make. A benchmark without an arm in [`figures`] has rows only.

use std::collections::BTreeMap;

use echoless_lab::chart::{Axis, Bars, Chart, Scale, Series, Style};

use super::rows::{Row, Rows};
use crate::formats::EDITCAP_INPUT;

/// A plot, and the end of the name of its file, which is unique within its benchmark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) slug: String,
    pub(super) chart: Chart,
}

/// The plots of a benchmark, given its name; none without points.
pub(super) fn figures(benchmark: &str, rows: &Rows) -> Vec<Figure> {
    let setting = [
        "paper",
        "table",
        "stream_len",
        "distinct_percent",
        "memory_mib",
    ];
    let mut figures = match benchmark {
        "limit" => vec![speed_by_size(rows)],
        "peers" => by_group(rows, &["memory_mib"], speed_against_fpr),
        "scaling" => by_group(rows, &["memory_mib"], speed_by_threads),
        "paper" => by_group(rows, &setting, frontier),
        "windows" => vec![bits_of_a_key(rows)],
        "sliced" => by_group(
            rows,
            &["part", "measure", "stream", "setting", "x_name"],
            with_formula,
        ),
        _ => Vec::new(),
    };
    // Rows of `scaling` that belong to no size are costs, not speeds of a filter.
    figures.retain(|figure| !figure.slug.is_empty() && !figure.chart.is_empty());
    figures
}

/// The bars of a benchmark of whole programs, given its name, and the end of the name of its file.
pub(super) fn bars(benchmark: &str, rows: &Rows) -> Option<(&'static str, Bars)> {
    let (slug, columns, chosen): (_, _, fn(Row) -> bool) = match benchmark {
        "tools" => ("call-records", ["name", "mib"], |row| {
            row.text("input") == "cdr"
        }),
        "formats" => ("packets", ["command", "records"], |row| {
            row.text("input") == EDITCAP_INPUT
        }),
        _ => return None,
    };
    let mut bars: Vec<(String, f64)> = Vec::new();
    let mut size = 0.0;
    for row in rows.iter().filter(|row| chosen(*row)) {
        let name = row.text(columns[0]).split(' ').next().unwrap_or_default();
        // The first row of a program stands for it.
        if let Some(seconds) = row.number("cpu_seconds")
            && bars.iter().all(|bar| bar.0 != name)
        {
            size = row.number(columns[1]).unwrap_or(size);
            bars.push((name.to_owned(), seconds));
        }
    }
    let input = match benchmark {
        "tools" => format!("{:.1} GB of call records", size * 1.048_576 / 1000.0),
        _ => format!("{size:.0} packets, each compared with 19,999 before"),
    };
    let drawn = Bars {
        title: format!("{input}: seconds of CPU time"),
        bars,
        highlighted: "echoless".to_owned(),
    };
    (drawn.bars.len() > 1).then_some((slug, drawn))
}

/// The values of the columns that define a group, and its rows.
type Group<'a> = (Vec<(&'a str, &'a str)>, Vec<Row<'a>>);

/// One figure for each combination of values of these columns; missing columns are ignored.
fn by_group(rows: &Rows, columns: &[&str], figure: fn(&str, &[Row]) -> Chart) -> Vec<Figure> {
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
                    "x_name" => format!("by {value}"),
                    "part" | "measure" | "stream" | "setting" => (*value).to_owned(),
                    column => format!("{column} {value}"),
                })
                .collect();
            Figure {
                slug: slug.join("-"),
                chart: figure(&title.join(", "), members),
            }
        })
        .collect()
}

fn slug(text: &str) -> String {
    let keep = |character: char| character.is_ascii_alphanumeric() || character == '.';
    let words: Vec<&str> = text.split(|character| !keep(character)).collect();
    words.join("-").to_lowercase()
}

/// The rate in millions of keys a second.
fn millions(row: Row) -> Option<f64> {
    row.number("keys_per_second").map(|rate| rate / 1e6)
}

/// One series for each name, in the order in which names first appear. Lines are sorted by x.
fn series<'a>(
    rows: impl Iterator<Item = Row<'a>>,
    name: impl Fn(Row) -> String,
    style: Style,
    point: impl Fn(Row) -> Option<(f64, f64)>,
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let (name, Some(point)) = (name(row), point(row)) else {
            continue;
        };
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => all.push(Series::new(name, style, vec![point])),
        }
    }
    if style == Style::Line {
        for series in &mut all {
            series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    all
}

/// Each filter on its fastest kernel, and the machine's limit.
fn speed_by_size(rows: &Rows) -> Figure {
    let filters = || rows.iter().filter(|row| row.text("name") != "machine");
    let mut limit = series(
        filters(),
        |_| "random line reads".into(),
        Style::Line,
        |row| {
            let limit = row.number("limit_keys_per_second")?;
            Some((row.number("memory_mib")?, limit / 1e6))
        },
    );
    for line in &mut limit {
        line.points.dedup();
    }
    // The sum over all sizes decides which kernel of a filter is the fastest.
    fn key(row: Row<'_>) -> (&str, &str) {
        (row.text("variant"), row.text("kernel"))
    }
    let mut totals: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for row in filters() {
        *totals.entry(key(row)).or_default() += millions(row).unwrap_or(0.0);
    }
    let is_fastest = |row: &Row| {
        let own = totals[&key(*row)];
        let mut others = totals.iter();
        others.all(|((variant, _), total)| *variant != row.text("variant") || *total <= own)
    };
    let measured = series(
        filters().filter(is_fastest),
        |row| named(&[row.text("variant"), row.text("kernel")]),
        Style::Line,
        |row| Some((row.number("memory_mib")?, millions(row)?)),
    );
    Figure {
        slug: "speed".into(),
        chart: Chart {
            title: "Speed by size, against the machine's limit".into(),
            x: Axis::new("memory, MiB", Scale::Log2),
            y: Axis::new("million keys per second", Scale::Linear),
            series: limit.into_iter().chain(measured).collect(),
        },
    }
}

/// The words that are not empty, separated by commas.
fn named(words: &[&str]) -> String {
    let words = words.iter().filter(|word| !word.is_empty());
    words.copied().collect::<Vec<_>>().join(", ")
}

fn speed_against_fpr(group: &str, rows: &[Row]) -> Chart {
    Chart {
        title: format!("Speed against false positive rate, {group}"),
        x: Axis::new(
            "false positive rate after the stream (0 on the left edge)",
            Scale::Log10,
        ),
        y: Axis::new("million keys per second", Scale::Log10),
        series: series(
            rows.iter().copied(),
            |row| named(&[row.text("name"), row.text("variant")]),
            Style::Points,
            |row| {
                let rate = row.number("fpr_full").or_else(|| row.number("fpr"))?;
                Some((rate, millions(row)?))
            },
        ),
    }
}

fn speed_by_threads(group: &str, rows: &[Row]) -> Chart {
    let name = |row: Row| match row.text("name") {
        // Their variant is the number of threads, which the axis shows.
        name @ ("ordered" | "separate") => name.to_owned(),
        name => named(&[name, row.text("variant"), row.text("stream")]),
    };
    let point = |row: Row| Some((row.number("threads")?, millions(row)?));
    // Not the simulated rows.
    let measured = rows.iter().filter(|row| row.text("kind") == "measured");
    Chart {
        title: format!("Speed by threads, {group}"),
        x: Axis::new("threads", Scale::Log2),
        y: Axis::new("million keys per second", Scale::Log10),
        series: series(measured.copied(), name, Style::Line, point),
    }
}

fn frontier(group: &str, rows: &[Row]) -> Chart {
    Chart {
        title: named(&["Misses against false positives", group]),
        x: Axis::new(
            "measured false positive rate (0 on the left edge)",
            Scale::Log10,
        ),
        y: Axis::new(
            "measured false negative rate (0 on the lower edge)",
            Scale::Log10,
        ),
        series: series(
            rows.iter().copied(),
            |row| named(&[row.text("algorithm"), row.text("form")]),
            Style::Points,
            |row| Some((row.number("measured_fpr")?, row.number("measured_fnr")?)),
        ),
    }
}

/// The best setting of each filter with a window.
fn bits_of_a_key(rows: &Rows) -> Figure {
    let point = |row: Row| Some((row.number("max_fpr")?, row.number("bits_per_key")?));
    Figure {
        slug: "bits".into(),
        chart: Chart {
            title: "Memory of a key in a window".into(),
            x: Axis::new("bound of the false positive rate", Scale::Log10),
            y: Axis::new("bits for each key of the window", Scale::Log2),
            series: series(
                rows.iter(),
                |row| row.text("name").into(),
                Style::Line,
                point,
            ),
        },
    }
}

/// Measured figures as lines, the values of their formulas as points.
fn with_formula(group: &str, rows: &[Row]) -> Chart {
    let first = |column| rows.first().map_or("", |row| row.text(column));
    let measured = series(
        rows.iter().copied(),
        |row| row.text("series").to_owned(),
        Style::Line,
        |row| Some((row.number("x")?, row.number("measured")?)),
    );
    let formulas = series(
        rows.iter().copied(),
        |row| format!("{}, formula", row.text("series")),
        Style::Points,
        |row| Some((row.number("x")?, row.number("formula")?)),
    );
    Chart {
        title: group.to_owned(),
        x: Axis::new(first("x_name").replace('_', " "), Scale::Linear),
        y: Axis::new(first("measure").replace('_', " "), Scale::Linear),
        series: measured.into_iter().chain(formulas).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(benchmark: &str, csv: &str) -> Vec<Figure> {
        figures(benchmark, &Rows::parse(csv).unwrap())
    }

    #[test]
    fn whole_programs_have_bars_of_their_first_rows() {
        let tools = "name,input,mib,cpu_seconds\n\
                     echoless,cdr,200,0.5\necholess,cdr,200,0.9\nsort,cdr,200,5\n\
                     gawk,cdr,200,\nsort,short lines,200,7\n";
        let (slug, drawn) = bars("tools", &Rows::parse(tools).unwrap()).unwrap();
        assert_eq!(slug, "call-records");
        let expected = [("echoless", 0.5), ("sort", 5.0)];
        assert_eq!(
            drawn.bars,
            expected.map(|(name, value)| (name.to_owned(), value))
        );
        assert_eq!(drawn.title, "0.2 GB of call records: seconds of CPU time");
        assert_eq!(bars("limit", &Rows::parse(tools).unwrap()), None);
        assert_eq!(bars("formats", &Rows::parse(tools).unwrap()), None);
    }

    #[test]
    fn limit_shows_each_filter_on_its_fastest_kernel() {
        let figures = of(
            "limit",
            "name,variant,kernel,memory_mib,keys_per_second,limit_keys_per_second\n\
             machine,random line reads,,1,9e8,9e8\n\
             filter,fifo,scalar,1,1e8,1e9\n\
             filter,fifo,avx2,64,2e8,3e8\n\
             filter,fifo,avx2,1,5e8,1e9\n",
        );
        let series = &figures[0].chart.series;
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["random line reads", "fifo, avx2"]);
        assert_eq!(series[0].points, [(1.0, 1000.0), (64.0, 300.0)]);
        assert_eq!(series[1].points, [(1.0, 500.0), (64.0, 200.0)]);
    }

    #[test]
    fn peers_have_a_figure_for_each_size() {
        let figures = of(
            "peers",
            "name,variant,memory_mib,keys_per_second,fpr_full\n\
             a,x,1,1e8,1e-3\nb,,1,2e8,0\na,x,64,5e7,1e-3\n",
        );
        let slugs: Vec<&str> = figures.iter().map(|figure| figure.slug.as_str()).collect();
        assert_eq!(slugs, ["1", "64"]);
        assert_eq!(figures[0].chart.series.len(), 2);
        assert_eq!(figures[0].chart.series[1].name, "b");
        assert_eq!(figures[0].chart.series[1].points, [(0.0, 200.0)]);
        assert!(figures[1].chart.title.ends_with("64 MiB"));
    }

    #[test]
    fn only_measured_rows_are_drawn_by_threads() {
        let figures = of(
            "scaling",
            "name,variant,stream,threads,memory_mib,keys_per_second,kind\n\
             ordered,2 threads,distinct,2,64,2e8,measured\nordered,1 thread,distinct,1,64,1e8,measured\n\
             command in order,chunks,,8,64,8e8,simulated\nrouting,8 partitions,,1,,1e9,measured\n",
        );
        assert_eq!(figures.len(), 1);
        let series = &figures[0].chart.series;
        assert_eq!(series[0].points, [(1.0, 100.0), (2.0, 200.0)]);
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
        assert_eq!(figures[0].chart.series[1].name, "sbf, line");
        assert_eq!(figures[0].chart.series[1].points, [(2e-2, 0.0)]);
    }

    #[test]
    fn windows_have_a_line_for_each_filter() {
        let figures = of(
            "windows",
            "name,max_fpr,bits_per_key\nclocked,1e-2,28\ngbf,1e-2,17\nclocked,1e-4,90\n",
        );
        let series = &figures[0].chart.series;
        assert_eq!(series[0].points, [(1e-4, 90.0), (1e-2, 28.0)]);
        assert_eq!(series[1].name, "gbf");
    }

    #[test]
    fn formulas_are_points_beside_the_measured_lines() {
        let figures = of(
            "sliced",
            "part,stream,setting,series,x_name,x,measure,measured,formula\n\
             fpr,zipf,Pfp 0.05,h-v,slices,20,fpr,0.02,0.021\n\
             fpr,zipf,Pfp 0.05,h-v,slices,4,fpr,0.01,0.011\n\
             tree,zipf,5 levels,dense,level,0,hits,0.3,\n",
        );
        assert_eq!(figures.len(), 2);
        assert_eq!(figures[0].slug, "fpr-fpr-zipf-pfp-0.05-slices");
        assert_eq!(
            figures[0].chart.title,
            "fpr, fpr, zipf, Pfp 0.05, by slices"
        );
        let series = &figures[0].chart.series;
        assert_eq!(series[0].points, [(4.0, 0.01), (20.0, 0.02)]);
        assert_eq!(series[1].name, "h-v, formula");
        assert_eq!(series[1].style, Style::Points);
        assert_eq!(series[1].points, [(20.0, 0.021), (4.0, 0.011)]);
        assert_eq!(figures[1].chart.series.len(), 1);
        assert_eq!(figures[1].chart.y.label, "hits");
    }

    #[test]
    fn other_benchmarks_and_empty_rows_have_none() {
        assert!(of("tools", "name\nsort\n").is_empty());
        assert!(of("limit", "name,variant\n").is_empty());
    }
}
