//! The native methods. Their names and types are those that Java expects; what a filter does with
//! the arguments is in `echoless-foreign`.
#![allow(non_snake_case, clippy::too_many_arguments)]

use std::io::BufReader;
use std::sync::{Mutex, MutexGuard};

use echoless::Report;
use echoless_foreign::{
    Code, Failure, Filter, Handle, Keys, Partitions, ReportFields, Shared, Snapshot, Table,
    exclusive,
};
use jni::EnvUnowned;
use jni::objects::{
    JByteArray, JByteBuffer, JClass, JIntArray, JLongArray, JObject, JObjectArray, JString,
};
use jni::sys::{jboolean, jint, jlong};

use crate::call::{bytes, call, check_length, count, hasher, of_java, text};
use crate::keys::{HashArray, NumberArray, check_tick, direct, judge, with_packed, write_hashes};
use crate::streams::Stream;

/// What a `Resource` of Java stands for. Its subclasses pass their own handles only.
enum Thing {
    Filter(Mutex<Filter>),
    Shared(Shared),
    Partitions(Box<Mutex<Partitions>>),
    Snapshot(Snapshot),
}

static THINGS: Table<Thing> = Table::new(1, FILTER);
const FILTER: &str = "filter";

fn unsupported() -> Failure {
    Failure::new(Code::Unsupported, "the object has no such method")
}

fn insert(thing: Thing) -> Result<jlong, Failure> {
    THINGS.insert(thing).map(Handle::number)
}

impl Thing {
    fn filter(&self) -> Result<MutexGuard<'_, Filter>, Failure> {
        match self {
            Self::Filter(filter) => exclusive(FILTER, filter),
            _ => Err(unsupported()),
        }
    }

    fn partitions(&self) -> Result<MutexGuard<'_, Partitions>, Failure> {
        match self {
            Self::Partitions(filter) => exclusive(FILTER, filter),
            _ => Err(unsupported()),
        }
    }

    fn observe_or_find(
        &self,
        inserts: bool,
        keys: &(impl Keys + ?Sized),
        ticks: Option<&[u64]>,
        words: &mut [u64],
    ) -> Result<u64, Failure> {
        match (self, inserts) {
            (Self::Shared(filter), true) => filter.observe(keys, words),
            (Self::Shared(filter), false) => filter.contains(keys, words),
            (Self::Partitions(_), true) => self.partitions()?.observe(keys, ticks, words),
            (_, true) => self.filter()?.observe(keys, ticks, words),
            (_, false) => self.filter()?.contains(keys, words),
        }
    }

    /// A report that reads some lines, or all of them at once if `most_lines` is 0.
    fn report(&self, most_lines: usize) -> Result<Report, Failure> {
        Ok(match (self, most_lines) {
            (Self::Shared(filter), 0) => filter.report(),
            (Self::Partitions(_), 0) => self.partitions()?.report(),
            (_, 0) => self.filter()?.report(),
            _ => self.partitions()?.report_in_slices(most_lines),
        })
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_newFilter<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    spec: JString<'local>,
    seed: jlong,
    secret: JByteArray<'local>,
) -> jlong {
    call(env, |env| {
        let hasher = hasher(env, seed, &secret)?;
        let filter = Filter::new(&text(env, "spec", &spec)?, hasher)?;
        insert(Thing::Filter(Mutex::new(filter)))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_newShared<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    spec: JString<'local>,
    seed: jlong,
    secret: JByteArray<'local>,
) -> jlong {
    call(env, |env| {
        let hasher = hasher(env, seed, &secret)?;
        insert(Thing::Shared(Shared::new(
            &text(env, "spec", &spec)?,
            hasher,
        )?))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_newPartitions<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    spec: JString<'local>,
    seed: jlong,
    secret: JByteArray<'local>,
    number: jint,
    first: jint,
    last: jint,
) -> jlong {
    call(env, |env| {
        let hasher = hasher(env, seed, &secret)?;
        let number = count("count", number)?;
        let owned = count("first", first)?..count("last", last)? + 1;
        let spec = text(env, "spec", &spec)?;
        let partitions = Partitions::open(&spec, hasher, number, owned)?;
        insert(Thing::Partitions(Box::new(Mutex::new(partitions))))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_newSnapshot<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
) -> jlong {
    call(env, |_| {
        let snapshot = THINGS.get(handle)?.partitions()?.snapshot();
        insert(Thing::Snapshot(snapshot))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_free<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) {
    call(env, |_| THINGS.remove(handle));
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_judgeHashes<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    inserts: jboolean,
    hashes: JLongArray<'local>,
    ticks: JLongArray<'local>,
    number: jint,
    verdicts: JLongArray<'local>,
) -> jlong {
    call(env, |env| {
        let thing = THINGS.get(handle)?;
        let number = count("n", number)?;
        let keys = HashArray::new(env, &hashes, number)?;
        judge(env, &ticks, number, &verdicts, |ticks, words| {
            thing.observe_or_find(inserts, &keys, ticks, words)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_judgePacked<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    inserts: jboolean,
    packed: JByteArray<'local>,
    offsets: JIntArray<'local>,
    ticks: JLongArray<'local>,
    number: jint,
    verdicts: JLongArray<'local>,
) -> jlong {
    call(env, |env| {
        let thing = THINGS.get(handle)?;
        let number = count("n", number)?;
        with_packed(env, &packed, &offsets, number, |keys| {
            judge(env, &ticks, number, &verdicts, |ticks, words| {
                thing.observe_or_find(inserts, keys, ticks, words)
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_judgeDirect<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    inserts: jboolean,
    hashes: JByteBuffer<'local>,
    position: jint,
    limit: jint,
    ticks: JLongArray<'local>,
    number: jint,
    verdicts: JLongArray<'local>,
) -> jlong {
    call(env, |env| {
        let thing = THINGS.get(handle)?;
        let number = count("n", number)?;
        let bounds = [count("position", position)?, count("limit", limit)?];
        // SAFETY: the documentation of the method says that nothing may write or free the buffer
        // meanwhile.
        let keys = unsafe { direct(env, &hashes, bounds, number)? };
        judge(env, &ticks, number, &verdicts, |ticks, words| {
            thing.observe_or_find(inserts, &keys, ticks, words)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_advance<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    tick: jlong,
) {
    call(env, |_| {
        let tick = tick.cast_unsigned();
        check_tick(tick)?;
        THINGS.get(handle)?.filter()?.advance_to(tick);
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_clear<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
) {
    call(env, |_| {
        match &*THINGS.get(handle)? {
            Thing::Shared(filter) => filter.clear(),
            filter => filter.filter()?.clear(),
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_memory<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
) -> jlong {
    call(env, |_| {
        let bytes = match &*THINGS.get(handle)? {
            Thing::Shared(filter) => filter.memory_bytes(),
            filter @ Thing::Partitions(_) => filter.partitions()?.memory_bytes(),
            filter => filter.filter()?.memory_bytes(),
        };
        Ok(bytes.cast_signed())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_specText<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
) -> JString<'local> {
    call(env, |env| {
        let spec = match &*THINGS.get(handle)? {
            Thing::Shared(filter) => filter.spec().to_string(),
            filter @ Thing::Partitions(_) => filter.partitions()?.spec().to_string(),
            filter => filter.filter()?.spec().to_string(),
        };
        env.new_string(spec).map_err(of_java)
    })
}

/// Writes the counts of the report, then its rates as the bits of numbers.
#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_reportFields<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    most_lines: jint,
    into: JLongArray<'local>,
) {
    call(env, |env| {
        let report = THINGS
            .get(handle)?
            .report(count("mostLines", most_lines)?)?;
        let fields = ReportFields::from(&report);
        let rate = |rate: f64| rate.to_bits();
        let values = [
            fields.memory_bytes,
            fields.observed,
            fields.fresh,
            fields.evictions,
            fields.expired,
            rate(fields.fill),
            rate(fields.expected_fpr),
            rate(fields.most_fpr),
            rate(fields.expected_false_duplicates),
            rate(fields.miss_age),
            fields.window_ticks,
        ];
        check_length(env, "report", &into, values.len())?;
        let values = values.map(u64::cast_signed);
        into.set_region(env, 0, &values).map_err(of_java)
    });
}

/// Saves a filter with bytes of the caller.
#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_saveWhole<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    of_caller: JByteArray<'local>,
    stream: JObject<'local>,
) {
    call(env, |env| {
        let of_caller = bytes(env, "bytes", &of_caller)?;
        let output = Stream::new(env, &stream)?;
        match &*THINGS.get(handle)? {
            Thing::Shared(filter) => filter.save(&of_caller, output),
            filter => filter.filter()?.save(None, &of_caller, output),
        }
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_savePartition<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    partition: jint,
    stream: JObject<'local>,
) {
    call(env, |env| {
        let partition = count("partition", partition)?;
        let output = Stream::new(env, &stream)?;
        match &*THINGS.get(handle)? {
            Thing::Snapshot(snapshot) => snapshot.save(partition, output),
            filter => filter.partitions()?.save(partition, output),
        }
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_loadPartition<'local>(
    env: EnvUnowned<'local>,
    _: JObject<'local>,
    handle: jlong,
    partition: jint,
    stream: JObject<'local>,
) {
    call(env, |env| {
        let partition = count("partition", partition)?;
        let input = BufReader::new(Stream::new(env, &stream)?);
        THINGS.get(handle)?.partitions()?.load(partition, input)
    });
}

/// Restores a filter, and writes the bytes that were saved with it to the first place of `into`.
#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Resource_loadWhole<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    is_shared: jboolean,
    stream: JObject<'local>,
    seed: jlong,
    secret: JByteArray<'local>,
    memory_limit: jlong,
    into: JObjectArray<'local, JByteArray<'local>>,
) -> jlong {
    call(env, |env| {
        let hasher = hasher(env, seed, &secret)?;
        let limit = u64::try_from(memory_limit)
            .map_err(|_| Failure::argument("memoryLimit", memory_limit, "0 or more"))?;
        let input = BufReader::new(Stream::new(env, &stream)?);
        let (filter, saved) = if is_shared {
            let (filter, saved) = Shared::load(input, hasher, limit)?;
            (Thing::Shared(filter), saved)
        } else {
            let (filter, saved) = Filter::load([input], hasher, limit)?;
            (Thing::Filter(Mutex::new(filter)), saved.concat())
        };
        let saved = env.byte_array_from_slice(&saved).map_err(of_java)?;
        into.set_element(env, 0, &saved).map_err(of_java)?;
        insert(filter)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Hasher_hashKey<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    seed: jlong,
    secret: JByteArray<'local>,
    key: JByteArray<'local>,
) -> jlong {
    call(env, |env| {
        let hasher = hasher(env, seed, &secret)?;
        let hash = hasher.hash(bytes(env, "key", &key)?);
        Ok(hash.get().cast_signed())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Hasher_hashPacked<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    seed: jlong,
    secret: JByteArray<'local>,
    packed: JByteArray<'local>,
    offsets: JIntArray<'local>,
    number: jint,
    hashes: JLongArray<'local>,
) {
    call(env, |env| {
        let hasher = hasher(env, seed, &secret)?;
        let number = count("n", number)?;
        with_packed(env, &packed, &offsets, number, |keys| {
            write_hashes(env, keys, &hasher, &hashes)
        })
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_echoless_Hasher_hashNumbers<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    seed: jlong,
    secret: JByteArray<'local>,
    numbers: JLongArray<'local>,
    number: jint,
    hashes: JLongArray<'local>,
) {
    call(env, |env| {
        let hasher = hasher(env, seed, &secret)?;
        let keys = NumberArray(HashArray::new(env, &numbers, count("n", number)?)?);
        write_hashes(env, &keys, &hasher, &hashes)
    });
}
