//! The native methods. Their names and types are those that Java expects; what an object does with
//! the arguments is in `echoless-foreign`.
// Java gives the names and the arguments.
#![allow(non_snake_case)]

use std::cell::RefCell;

use echoless_foreign::{
    Call, Cut, Failure, Handle, Keys, Kind, Object, ReportFields, Source, Table, Target, TimeRules,
};
use echoless_stream::Window;
use jni::objects::{
    JByteArray, JByteBuffer, JIntArray, JLongArray, JObject, JObjectArray, JString,
};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};

use crate::call::{bytes, call, check_length, count, hasher, of_java, text, whole};
use crate::keys::{
    HashArray, NumberArray, check_tick, direct, judge, judge_timed, with_packed, write_hashes,
};
use crate::streams::{Stream, position, run};

/// The objects that a `Resource` of Java stands for. Its subclasses pass their own handles only.
static OBJECTS: Table<Object> = Table::new(1, "filter");

fn insert(object: Object) -> Result<jlong, Failure> {
    OBJECTS.insert(object).map(Handle::number)
}

/// The number of an object that was loaded, and the bytes that were saved with it.
fn insert_loaded<'local>(
    env: &mut Env<'local>,
    saved: &[u8],
    object: Object,
    into: &JObjectArray<'local, JByteArray<'local>>,
) -> Result<jlong, Failure> {
    let saved = env.byte_array_from_slice(saved).map_err(of_java)?;
    into.set_element(env, 0, &saved).map_err(of_java)?;
    insert(object)
}

/// Judges a batch, at its ticks if there are some.
fn judge_keys(
    env: &Env<'_>,
    handle: jlong,
    inserts: jboolean,
    keys: &dyn Keys,
    ticks: &JLongArray<'_>,
    verdicts: &JLongArray<'_>,
) -> Result<jlong, Failure> {
    let object = OBJECTS.get(handle)?;
    judge(
        env,
        ticks,
        keys.len(),
        verdicts,
        |ticks, words| match inserts {
            true => object.observe_at(keys, ticks, words),
            false => object.contains(keys, words),
        },
    )
}

/// Declares native methods: each gets the environment and its arguments, and returns a value or a
/// failure.
macro_rules! natives {
    ($local:lifetime, $env:ident; $(
        $(#[doc = $doc:literal])*
        $class:ident.$name:ident($($argument:ident: $type:ty),*) -> $result:ty $run:block
    )*) => {$(
        $(#[doc = $doc])*
        #[unsafe(export_name = concat!("Java_echoless_", stringify!($class), "_", stringify!($name)))]
        extern "system" fn $name<$local>(
            env: EnvUnowned<$local>,
            _: JObject<$local>,
            $($argument: $type),*
        ) -> $result {
            call(env, |$env| $run)
        }
    )*};
}

natives! { 'local, env;
    Resource.newObject(
        number: jint,
        spec: JString<'local>,
        seed: jlong,
        secret: JByteArray<'local>,
        partitions: jint
    ) -> jlong {
        let hasher = hasher(env, seed, &secret)?;
        let partitions = count("partitions", partitions)?;
        let spec = text(env, "spec", &spec)?;
        insert(Object::new(Kind::of_number(number.cast_unsigned())?, &spec, hasher, partitions)?)
    }

    Resource.newPartitions(
        spec: JString<'local>,
        seed: jlong,
        secret: JByteArray<'local>,
        number: jint,
        first: jint,
        last: jint
    ) -> jlong {
        let hasher = hasher(env, seed, &secret)?;
        let number = count("count", number)?;
        let owned = count("first", first)?..count("last", last)? + 1;
        let spec = text(env, "spec", &spec)?;
        insert(Object::partitions(&spec, hasher, number, owned)?)
    }

    Resource.open(handle: jlong) -> jlong {
        let _ = env;
        let opened = OBJECTS.get(handle)?.open()?;
        insert(opened)
    }

    Resource.free(handle: jlong) -> () {
        let _ = env;
        OBJECTS.remove(handle)
    }

    Resource.judgeHashes(
        handle: jlong,
        inserts: jboolean,
        hashes: JLongArray<'local>,
        ticks: JLongArray<'local>,
        number: jint,
        verdicts: JLongArray<'local>
    ) -> jlong {
        let keys = HashArray::new(env, &hashes, count("n", number)?)?;
        judge_keys(env, handle, inserts, &keys, &ticks, &verdicts)
    }

    Resource.judgePacked(
        handle: jlong,
        inserts: jboolean,
        packed: JByteArray<'local>,
        offsets: JIntArray<'local>,
        ticks: JLongArray<'local>,
        number: jint,
        verdicts: JLongArray<'local>
    ) -> jlong {
        with_packed(env, &packed, &offsets, count("n", number)?, |keys| {
            judge_keys(env, handle, inserts, keys, &ticks, &verdicts)
        })
    }

    Resource.judgeDirect(
        handle: jlong,
        inserts: jboolean,
        hashes: JByteBuffer<'local>,
        position: jint,
        limit: jint,
        number: jint,
        verdicts: JLongArray<'local>
    ) -> jlong {
        let bounds = [count("position", position)?, count("limit", limit)?];
        // SAFETY: the documentation of the method says that nothing may write or free the buffer
        // meanwhile.
        let keys = unsafe { direct(env, &hashes, bounds, count("n", number)?)? };
        judge_keys(env, handle, inserts, &keys, &JLongArray::null(), &verdicts)
    }

    /// Runs a call with numbers, by its place in the table.
    Resource.number(handle: jlong, number: jint, argument: jlong) -> jlong {
        let _ = env;
        let call = Call::ALL[number as usize];
        if call == Call::advance {
            check_tick(argument.cast_unsigned())?;
        }
        let result = OBJECTS.get(handle)?.call(call, argument.cast_unsigned())?;
        Ok(result.cast_signed())
    }

    Resource.specText(handle: jlong) -> JString<'local> {
        let spec = OBJECTS.get(handle)?.spec()?;
        env.new_string(spec).map_err(of_java)
    }

    /// Writes the counts of the report, then its rates as the bits of numbers. Of partitions, a
    /// report reads some lines, or all of them at once if `mostLines` is 0.
    Resource.reportFields(handle: jlong, most_lines: jint, into: JLongArray<'local>) -> () {
        let object = OBJECTS.get(handle)?;
        let report = match count("mostLines", most_lines)? {
            0 => object.read_report()?,
            most => object.report_in_slices(most)?,
        };
        let fields = ReportFields::from(&report);
        let values = [
            fields.memory_bytes,
            fields.observed,
            fields.fresh,
            fields.evictions,
            fields.expired,
            fields.fill.to_bits(),
            fields.expected_fpr.to_bits(),
            fields.most_fpr.to_bits(),
            fields.expected_false_duplicates.to_bits(),
            fields.miss_age.to_bits(),
            fields.window_ticks,
        ];
        check_length(env, "report", &into, values.len())?;
        let values = values.map(u64::cast_signed);
        into.set_region(env, 0, &values).map_err(of_java)
    }

    /// Saves a filter of any kind with bytes of the caller.
    Resource.saveWhole(handle: jlong, saved: JByteArray<'local>, stream: JObject<'local>) -> () {
        let saved = bytes(env, "bytes", &saved)?;
        let env = RefCell::new(env);
        let output = Box::new(Stream::new(&env, &stream)?);
        OBJECTS.get(handle)?.save(Target::Stream(None, output), &saved)
    }

    /// Saves a filter without errors in a folder, with bytes of the caller.
    Resource.saveFolder(handle: jlong, folder: JString<'local>, saved: JByteArray<'local>) -> () {
        let folder = text(env, "folder", &folder)?;
        let saved = bytes(env, "bytes", &saved)?;
        OBJECTS.get(handle)?.save(Target::File(folder.into()), &saved)
    }

    /// Saves an ordered filter with the bytes of the point where its state ends.
    Resource.saveAt(handle: jlong, stream: JObject<'local>) -> () {
        let env = RefCell::new(env);
        let output = Box::new(Stream::new(&env, &stream)?);
        let failed = RefCell::new(None);
        let cut = Cut {
            before: Box::new(|| *failed.borrow_mut() = run(&env, &stream).err()),
            position: Box::new(|| match failed.borrow_mut().take() {
                Some(failure) => Err(failure),
                None => position(&env, &stream),
            }),
        };
        OBJECTS.get(handle)?.save_at(Target::Stream(None, output), cut)
    }

    Resource.savePartition(handle: jlong, partition: jint, stream: JObject<'local>) -> () {
        let partition = count("partition", partition)?;
        let env = RefCell::new(env);
        let output = Box::new(Stream::new(&env, &stream)?);
        OBJECTS.get(handle)?.save(Target::Partition(partition, output), &[])
    }

    Resource.loadPartition(handle: jlong, partition: jint, stream: JObject<'local>) -> () {
        let partition = count("partition", partition)?;
        let env = RefCell::new(env);
        let input = std::io::BufReader::new(Stream::new(&env, &stream)?);
        OBJECTS.get(handle)?.load_partition(partition, input)
    }

    /// Restores a filter, and writes the bytes that were saved with it to the first place of
    /// `into`.
    Resource.loadObject(
        number: jint,
        stream: JObject<'local>,
        seed: jlong,
        secret: JByteArray<'local>,
        partitions: jint,
        memory_limit: jlong,
        into: JObjectArray<'local, JByteArray<'local>>
    ) -> jlong {
        let hasher = hasher(env, seed, &secret)?;
        let limit = whole("memoryLimit", memory_limit)?;
        let partitions = count("partitions", partitions)?;
        let env = RefCell::new(env);
        let from = Source::Streams(vec![Box::new(Stream::new(&env, &stream)?)]);
        let (saved, object) = Object::load(Kind::of_number(number.cast_unsigned())?, from, hasher, partitions, limit)?;
        insert_loaded(env.into_inner(), &saved, object, &into)
    }

    /// As `loadObject`, of a filter without errors.
    Resource.loadFolder(
        folder: JString<'local>,
        seed: jlong,
        secret: JByteArray<'local>,
        memory_limit: jlong,
        into: JObjectArray<'local, JByteArray<'local>>
    ) -> jlong {
        let hasher = hasher(env, seed, &secret)?;
        let limit = whole("memoryLimit", memory_limit)?;
        let from = Source::File(text(env, "folder", &folder)?.into());
        let (saved, object) = Object::load(Kind::Exact, from, hasher, 1, limit)?;
        insert_loaded(env, &saved, object, &into)
    }

    /// Writes the length of a tick, window, lateness and skew in ticks, and how many are remembered
    /// beyond the window.
    Partitions.windowFields(
        window: jlong,
        lateness: jlong,
        skew: jlong,
        into: JLongArray<'local>
    ) -> () {
        let (window, lateness) = (whole("window", window)?, whole("lateness", lateness)?);
        let window = Window::new(window, lateness, whole("skew", skew)?);
        let fields = [
            window.resolution,
            window.ticks,
            window.late_after,
            window.skew,
            window.remembered_beyond(),
        ];
        check_length(env, "window", &into, fields.len())?;
        into.set_region(env, 0, &fields.map(u64::cast_signed)).map_err(of_java)
    }

    Partitions.setTimeRules(
        handle: jlong,
        window: JLongArray<'local>,
        max_advance: jlong,
        judged: jint,
        failing: jint
    ) -> () {
        check_length(env, "window", &window, 4)?;
        let mut fields = [0; 4];
        window.get_region(env, 0, &mut fields).map_err(of_java)?;
        let [resolution, ticks, late_after, skew] = fields.map(i64::cast_unsigned);
        if resolution == 0 {
            return Err(Failure::argument("tick", 0, "1 or more"));
        }
        OBJECTS.get(handle)?.as_partitions()?.set_time_rules(TimeRules {
            window: Window {
                resolution,
                ticks,
                late_after,
                skew,
            },
            max_advance: Some(whole("maxAdvance", max_advance)?).filter(|most| *most > 0),
            judged: judged as u8,
            failing: failing as u8,
        });
        Ok(())
    }

    Partitions.judgeRecords(
        handle: jlong,
        packed: JByteArray<'local>,
        offsets: JIntArray<'local>,
        number: jint,
        times: JLongArray<'local>,
        now: jlong,
        fates: JByteArray<'local>
    ) -> jlong {
        let object = OBJECTS.get(handle)?;
        with_packed(env, &packed, &offsets, count("n", number)?, |keys| {
            judge_timed(env, keys.len(), &times, &fates, |times, fates| {
                object.as_partitions()?.judge(keys, times, now, fates)
            })
        })
    }

    Partitions.setWatermark(handle: jlong, time: jlong, now: jlong) -> () {
        let _ = env;
        OBJECTS.get(handle)?.as_partitions()?.set_watermark(time, now);
        Ok(())
    }

    Partitions.clockFields(handle: jlong, into: JLongArray<'local>) -> () {
        let clocks = OBJECTS.get(handle)?.as_partitions()?.clocks();
        check_length(env, "clocks", &into, clocks.len())?;
        let clocks: Vec<i64> = clocks.into_iter().map(u64::cast_signed).collect();
        into.set_region(env, 0, &clocks).map_err(of_java)
    }

    Partitions.restoreClock(handle: jlong, partition: jint, latest: jlong, watermark: jlong) -> () {
        let _ = env;
        let partition = count("partition", partition)?;
        let (latest, watermark) = (whole("clock", latest)?, whole("watermark", watermark)?);
        OBJECTS.get(handle)?.as_partitions()?.restore_clock(partition, latest, watermark)
    }

    Hasher.hashKey(seed: jlong, secret: JByteArray<'local>, key: JByteArray<'local>) -> jlong {
        let hasher = hasher(env, seed, &secret)?;
        let hash = hasher.hash(bytes(env, "key", &key)?);
        Ok(hash.get().cast_signed())
    }

    Hasher.hashPacked(
        seed: jlong,
        secret: JByteArray<'local>,
        packed: JByteArray<'local>,
        offsets: JIntArray<'local>,
        number: jint,
        hashes: JLongArray<'local>
    ) -> () {
        let hasher = hasher(env, seed, &secret)?;
        with_packed(env, &packed, &offsets, count("n", number)?, |keys| {
            write_hashes(env, keys, &hasher, &hashes)
        })
    }

    Hasher.hashNumbers(
        seed: jlong,
        secret: JByteArray<'local>,
        numbers: JLongArray<'local>,
        number: jint,
        hashes: JLongArray<'local>
    ) -> () {
        let hasher = hasher(env, seed, &secret)?;
        let keys = NumberArray(HashArray::new(env, &numbers, count("n", number)?)?);
        write_hashes(env, &keys, &hasher, &hashes)
    }
}
