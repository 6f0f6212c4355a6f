//! A real broker, members that come, go, freeze and are killed, and a broker that is killed: the
//! output has the first record of each key once, in order, and the topic of duplicates the others.
//! Four groups read one topic: without a window, with one of time, with one of offsets, and one
//! that copies it to partitions by values.
//!
//! ```sh
//! cargo test -p echoless-kafka --test chaos -- 20      # kills; then a seed, if you like
//! ```
//!
//! Needs a JDK and Maven, which fetches the broker (`broker/pom.xml`), and says SKIPPED without.

#[path = "support/broker.rs"]
mod broker;
mod support;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, SystemTime};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use broker::{Broker, wait_until_read};
use support::{Content, PATIENCE, Window, expected, read_all, signal, start_member};

const PARTITIONS: i32 = 6;
const KILLS: u64 = 6;
/// Records of a second, and of a kill.
const RECORDS: u64 = 5_000;

/// A group, and what it forgets. Keys come again up to 10 s and some 1,700 offsets later.
struct Group {
    name: &'static str,
    options: &'static [&'static str],
    window: Option<Window>,
}

const GROUPS: [Group; 4] = [
    COPYING,
    Group {
        name: "all",
        options: &[],
        window: None,
    },
    Group {
        name: "time",
        options: &["--window", "4s"],
        window: Some(Window {
            by_time: true,
            resolution: 2,
            ticks: 2_000,
        }),
    },
    Group {
        name: "offsets",
        options: &["--window", "600"],
        window: Some(Window {
            by_time: false,
            resolution: 1,
            ticks: 600,
        }),
    },
];

/// The group whose members copy, with values as keys.
const COPYING: Group = Group {
    name: "copy",
    options: &[],
    window: None,
};

/// The group whose members count.
const COUNTING: Group = Group {
    name: "counts",
    ..COPYING
};

/// Numbers that repeat for a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        (self.0 >> 33) % end
    }

    fn pause(&mut self, most: u64) {
        thread::sleep(Duration::from_millis(self.below(most)));
    }
}

fn create_topics(brokers: &str) {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()
        .expect("a client");
    let mut names = vec!["calls".to_owned()];
    for group in GROUPS.iter().chain([&COUNTING]) {
        names.extend(["fresh", "again"].map(|end| format!("{}.{end}", group.name)));
    }
    let topics: Vec<NewTopic<'_>> = names
        .iter()
        .map(|name| NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(1)))
        .collect();
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let created = futures_executor::block_on(admin.create_topics(&topics, &options));
    for topic in created.expect("an answer") {
        topic.expect("a topic");
    }
}

/// Writes records for some time, while the broker comes and goes. Every third key was there
/// before. Times go on by 1 ms for each record, and every twentieth is late, by up to 8 s.
fn write(brokers: &str, records: u64) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("enable.idempotence", "true")
        .create()
        .expect("a producer");
    let mut draw = Draw(17);
    let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let start = start.expect("a time").as_millis() as u64;
    for number in 0..records {
        let key = match draw.below(3) {
            0 => number - draw.below(10_000.min(number + 1)),
            _ => number,
        };
        let (key, value) = (format!("call {key}"), number.to_string());
        let late = match draw.below(20) {
            0 => draw.below(8_000),
            _ => 0,
        };
        let record = BaseRecord::to("calls")
            .key(&key)
            .payload(&value)
            .timestamp((start + number - late) as i64);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("a record");
        if number.is_multiple_of(RECORDS / 20) {
            producer.poll(Duration::from_millis(50));
        }
    }
    producer.flush(PATIENCE).expect("records are written");
}

/// The members of a group, of which two share a folder and others have their own.
struct Members<'a> {
    group: &'a Group,
    brokers: &'a str,
    root: PathBuf,
    alive: Vec<Child>,
    started: u64,
}

impl<'a> Members<'a> {
    fn new(group: &'a Group, brokers: &'a str, root: &Path) -> Self {
        let root = root.join(group.name);
        std::fs::create_dir(&root).expect("a folder");
        Self {
            group,
            brokers,
            root,
            alive: Vec::new(),
            started: 0,
        }
    }

    fn start(&mut self) {
        let state = match self.started % 4 {
            0 | 1 => "shared".to_owned(),
            own => format!("own {own}"),
        };
        let group = self.group.name;
        let again = format!("{group}.again");
        let mut options = vec![
            "-c",
            "session.timeout.ms=3000",
            "-c",
            "heartbeat.interval.ms=500",
            "-c",
            "transaction.timeout.ms=3000",
        ];
        options.extend(self.group.options);
        let is_judging = group != COPYING.name;
        if is_judging {
            options.extend(["--duplicates", &again]);
        }
        let log = self.log(self.started);
        let state = self.root.join(state);
        let state = is_judging.then_some(&*state);
        let member = start_member(self.brokers, group, state, &log, &options);
        self.alive.push(member);
        self.started += 1;
    }

    fn log(&self, number: u64) -> PathBuf {
        self.root.join(format!("member {number}.log"))
    }

    fn take(&mut self, draw: &mut Draw) -> Child {
        self.alive
            .remove(draw.below(self.alive.len() as u64) as usize)
    }
}

impl Drop for Members<'_> {
    fn drop(&mut self) {
        for member in &mut self.alive {
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}

/// Kills, freezes and starts members, and kills the broker, `kills` times in all. The groups
/// take turns, and every six kills the turns are moved by one.
fn disturb(broker: &mut Broker, groups: &mut [Members<'_>], kills: u64, draw: &mut Draw) {
    let first = draw.below(GROUPS.len() as u64);
    for kill in 0..kills {
        let members = &mut groups[((first + kill + kill / 6) % GROUPS.len() as u64) as usize];
        draw.pause(2_500);
        match kill % 6 {
            // One leaves in peace, and one that was killed takes its state with it.
            2 => {
                let mut leaving = members.take(draw);
                signal(&leaving, "-TERM");
                assert!(leaving.wait().expect("a process").success());
                members.take(draw).kill().expect("a process");
                let _ = std::fs::remove_dir_all(members.root.join("own 2"));
                members.start();
                members.start();
            }
            // The group gives it up while it is frozen, and it goes on as a zombie.
            3 => {
                let zombie = members.take(draw);
                signal(&zombie, "-STOP");
                members.start();
                thread::sleep(Duration::from_secs(6));
                signal(&zombie, "-CONT");
                members.alive.push(zombie);
                draw.pause(1_000);
                let mut killed = members.take(draw);
                killed.kill().expect("a process");
                killed.wait().expect("a process");
            }
            4 => broker.kill_and_start(),
            _ => {
                let mut killed = members.take(draw);
                killed.kill().expect("a process");
                killed.wait().expect("a process");
                draw.pause(2_000);
                members.start();
            }
        }
    }
}

/// How many fresh records and duplicates the members of a group counted, while records were
/// written and the members came and went in peace.
fn count(members: &mut Members<'_>) -> (usize, usize) {
    members.start();
    members.start();
    let brokers = members.brokers;
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(brokers, 2 * RECORDS));
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(1_200));
            let mut leaving = members.alive.remove(0);
            signal(&leaving, "-TERM");
            assert!(leaving.wait().expect("a process").success());
            members.start();
        }
        writer.join().expect("the writer");
    });
    wait_until_read(brokers, members.group.name, "calls", PARTITIONS);
    for mut member in members.alive.drain(..) {
        signal(&member, "-TERM");
        assert!(member.wait().expect("a process").success());
    }
    let (mut fresh, mut duplicates) = (0, 0);
    for number in 0..members.started {
        let said = std::fs::read_to_string(members.log(number)).expect("a log");
        let words: Vec<&str> = said.lines().last().expect("a line").split(' ').collect();
        for pair in words.windows(2) {
            match (pair[0].parse::<usize>(), pair[1]) {
                (Ok(count), "fresh,") => fresh += count,
                (Ok(count), "duplicates") => duplicates += count,
                _ => {}
            }
        }
    }
    (fresh, duplicates)
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let kills = numbers.first().copied().unwrap_or(KILLS);
    let seed = numbers.get(1).copied().unwrap_or(1);
    if !broker::is_available() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder").keep();
    let mut broker = Broker::start(root.join("broker"));
    let brokers = broker.address();
    create_topics(&brokers);
    let of = |group| Members::new(group, &brokers, &root);
    let mut groups: Vec<Members<'_>> = GROUPS.iter().map(of).collect();
    for members in &mut groups {
        members.start();
        members.start();
    }
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&brokers, (kills + 2) * RECORDS));
        disturb(&mut broker, &mut groups, kills, &mut Draw(seed));
        writer.join().expect("the writer");
    });
    for group in GROUPS {
        wait_until_read(&brokers, group.name, "calls", PARTITIONS);
    }
    let input = read_all(&brokers, "calls");
    let records = |content: &Content| content.values().map(Vec::len).sum::<usize>();
    println!("{kills} kills, seed {seed}, {} records", records(&input));
    for group in GROUPS {
        let name = group.name;
        let written = read_all(&brokers, &format!("{name}.fresh"));
        if name == COPYING.name {
            // Values differ, so each has one partition.
            let sorted = |content: &Content| {
                let mut records: Vec<_> = content.values().flatten().cloned().collect();
                records.sort_by_key(|(_, value, _)| value.clone());
                records
            };
            let mut copied = sorted(&input);
            for (key, value, _) in &mut copied {
                key.clone_from(value);
            }
            assert!(sorted(&written) == copied, "the copy differs");
            continue;
        }
        let (fresh, duplicates) = expected(&input, group.window);
        assert!(
            written == fresh,
            "{name}.fresh differs; logs are in {}",
            root.display()
        );
        let again = read_all(&brokers, &format!("{name}.again"));
        assert!(again == duplicates, "{name}.again differs");
        let (fresh, duplicates) = (records(&fresh), records(&duplicates));
        println!("{name}: {fresh} fresh records and {duplicates} duplicates");
    }
    drop(groups);
    let counted = count(&mut of(&COUNTING));
    let (fresh, duplicates) = expected(&read_all(&brokers, "calls"), None);
    assert_eq!(counted, (records(&fresh), records(&duplicates)));
    println!("as expected: 1 passed, 0 failed");
    drop(broker);
    std::fs::remove_dir_all(&root).expect("a folder");
}
