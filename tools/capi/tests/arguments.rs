//! Each function of the interface with each wrong argument: an error of one line, after which
//! nothing was recorded, no place was written, and the next call works.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::{fs, ptr};

use echoless_c::call::{echoless_hashing, echoless_last_error};
use echoless_c::engine::*;
use echoless_c::filter::*;
use echoless_c::keys::*;
use echoless_c::ordered::*;
use echoless_c::shared::*;
use echoless_foreign::ReportFields;

const LINES: &CStr = c"fingerprint:fpr=1e-8,memory=64KiB";
const UNTOUCHED: u64 = 0x5555_5555_5555_5555;

fn null<T>() -> *mut T {
    ptr::null_mut()
}

/// A pointer that is not NULL and divisible by no alignment.
fn odd<T>(data: *const T) -> *mut T {
    data.cast::<u8>().wrapping_add(1).cast::<T>().cast_mut()
}

fn keys(form: echoless_form, data: *const c_void, count: usize) -> echoless_keys {
    echoless_keys {
        form: form as u32,
        width: 0,
        stride: 0,
        count,
        data,
        extra: ptr::null(),
        ticks: ptr::null(),
    }
}

fn numbers(numbers: &[u64]) -> echoless_keys {
    keys(
        echoless_form::Numbers,
        numbers.as_ptr().cast(),
        numbers.len(),
    )
}

/// A handle of each kind, a good batch, and what a call can write.
struct World {
    packet_keys: *mut echoless_packet_keys,
    filter: *mut echoless_filter,
    shared: *mut echoless_shared,
    ordered: *mut echoless_ordered,
    thread: *mut echoless_thread,
    engine: *mut echoless_engine,
    port: *mut echoless_port,
    /// The state of a filter and of a shared one, with bytes of the caller.
    states: [std::ffi::CString; 2],
    _folder: tempfile::TempDir,
    ids: Vec<u64>,
    words: Vec<u64>,
    count: u64,
    length: usize,
    bytes: Vec<u8>,
    out: *mut c_void,
    report: ReportFields,
    /// One that is too short for its own size.
    short: ReportFields,
}

macro_rules! ok {
    ($call:expr) => {
        #[allow(unused_unsafe)]
        // SAFETY: the arguments are right.
        let status = unsafe { $call };
        assert_eq!(status, 0, "{}: {}", stringify!($call), last_error())
    };
}

fn last_error() -> String {
    // SAFETY: the text is valid until the next error of this thread.
    let text = unsafe { CStr::from_ptr(echoless_last_error()) };
    text.to_str().unwrap().to_owned()
}

/// A report whose numbers no filter has.
fn empty_report() -> ReportFields {
    ReportFields {
        size: size_of::<ReportFields>(),
        memory_bytes: UNTOUCHED,
        observed: UNTOUCHED,
        fresh: UNTOUCHED,
        evictions: UNTOUCHED,
        expired: UNTOUCHED,
        fill: 2.0,
        expected_fpr: 2.0,
        most_fpr: 2.0,
        expected_false_duplicates: 2.0,
        miss_age: 2.0,
        window_ticks: UNTOUCHED,
    }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = |name: &str| {
            let path = folder.path().join(name);
            std::ffi::CString::new(path.to_str().unwrap()).unwrap()
        };
        let mut world = Self {
            packet_keys: ptr::null_mut(),
            filter: ptr::null_mut(),
            shared: ptr::null_mut(),
            ordered: ptr::null_mut(),
            thread: ptr::null_mut(),
            engine: ptr::null_mut(),
            port: ptr::null_mut(),
            states: [state("filter"), state("shared")],
            _folder: folder,
            ids: (0..70).collect(),
            words: vec![UNTOUCHED; 80],
            count: UNTOUCHED,
            length: UNTOUCHED as usize,
            bytes: vec![0x55; 200],
            out: ptr::without_provenance_mut(UNTOUCHED as usize),
            report: empty_report(),
            short: ReportFields {
                size: 7,
                ..empty_report()
            },
        };
        ok!(echoless_packet_keys_new(null(), &raw mut world.packet_keys));
        ok!(echoless_filter_new(
            LINES.as_ptr(),
            null(),
            &raw mut world.filter
        ));
        let shared = c"row4x16:memory=64KiB";
        ok!(echoless_shared_new(
            shared.as_ptr(),
            null(),
            &raw mut world.shared
        ));
        ok!(echoless_ordered_new(
            LINES.as_ptr(),
            null(),
            2,
            &raw mut world.ordered
        ));
        ok!(echoless_thread_new(world.ordered, &raw mut world.thread));
        ok!(echoless_engine_new(
            LINES.as_ptr(),
            null(),
            2,
            &raw mut world.engine
        ));
        ok!(echoless_port_new(world.engine, &raw mut world.port));
        let [filter, shared] = &world.states;
        ok!(echoless_filter_save_file(
            world.filter,
            filter.as_ptr(),
            b"at 7".as_ptr(),
            4
        ));
        ok!(echoless_shared_save_file(
            world.shared,
            shared.as_ptr(),
            b"at 7".as_ptr(),
            4
        ));
        world
    }

    fn good(&self) -> echoless_keys {
        numbers(&self.ids)
    }

    /// The keys that each filter has observed.
    fn observed(&self) -> [u64; 4] {
        let mut reports = [empty_report(); 4];
        let [filter, shared, ordered, engine] = &mut reports;
        ok!(echoless_filter_report(self.filter, filter));
        ok!(echoless_shared_report(self.shared, shared));
        ok!(echoless_ordered_report(self.ordered, ordered));
        ok!(echoless_engine_report(self.engine, engine));
        [
            filter.observed,
            // It counts what it has recorded.
            shared.fresh,
            ordered.observed,
            engine.observed,
        ]
    }

    fn text(&mut self) -> *mut c_char {
        self.bytes.as_mut_ptr().cast()
    }

    /// A handle of the only kind that no other function takes.
    fn other<H>(&self) -> *mut H {
        self.packet_keys.cast()
    }

    /// What a call can write.
    fn written(&self) -> impl PartialEq + use<> {
        (
            self.words.clone(),
            self.count,
            self.length,
            self.bytes.clone(),
            self.out,
            (self.report, self.short),
            self.ids.clone(),
        )
    }

    /// The batch works with every filter.
    fn works(&mut self) {
        let (good, words, count) = (self.good(), self.words.as_mut_ptr(), &raw mut self.count);
        for expected in [0, 70] {
            ok!(echoless_filter_observe(self.filter, good, words, count));
            assert_eq!(self.count, expected);
            ok!(echoless_shared_observe(self.shared, good, words, count));
            assert_eq!(self.count, expected);
            ok!(echoless_thread_observe(self.thread, good, words, count));
            assert_eq!(self.count, expected);
            ok!(echoless_port_submit(self.port, good));
            ok!(echoless_port_drain(
                self.port,
                words,
                2,
                &raw mut self.length,
                count
            ));
            // It has observed the batch before.
            assert_eq!((self.length, self.count), (70, 70));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for status in [
            echoless_port_free(self.port),
            echoless_engine_free(self.engine),
            echoless_thread_free(self.thread),
            echoless_ordered_free(self.ordered),
            echoless_shared_free(self.shared),
            echoless_filter_free(self.filter),
            echoless_packet_keys_free(self.packet_keys),
        ] {
            assert_eq!(status, 0);
        }
    }
}

/// A call with one wrong argument.
struct Case {
    function: &'static str,
    what: String,
    run: Box<dyn Fn(&mut World) -> c_int>,
}

/// Adds a call of `$function` with the world `$world`.
macro_rules! case {
    ($cases:ident, $what:expr, $world:ident => $function:ident($($argument:expr),* $(,)?)) => {
        $cases.push(Case {
            function: stringify!($function),
            what: $what.to_string(),
            run: Box::new(move |$world: &mut World| {
                // SAFETY: what the pointers of the case do not have, the function must find out.
                #[allow(unused_unsafe)]
                unsafe { $function($($argument),*) }
            }),
        })
    };
}

/// Keys that are wrong in one way each.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrong {
    Form(u32),
    Null(u32),
    Misaligned(u32),
    TooMany(u32),
    OddTicks,
    NarrowStride,
    WideStride,
    NullSlice,
    LongSlice,
    Offsets32([i32; 3]),
    Offsets64([i64; 3]),
    NoBytes,
    NoOffsets,
    NoReader,
    OtherReader,
    NullPacket,
}

impl Wrong {
    fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Form(0),
            Self::Form(8),
            Self::Form(u32::MAX),
            Self::OddTicks,
            Self::NarrowStride,
            Self::WideStride,
            Self::NullSlice,
            Self::LongSlice,
            Self::NoBytes,
            Self::NoOffsets,
            Self::NoReader,
            Self::OtherReader,
            Self::NullPacket,
            Self::Misaligned(echoless_form::Packed32 as u32),
            Self::Misaligned(echoless_form::Packed64 as u32),
        ];
        for form in [
            echoless_form::Hashes,
            echoless_form::Numbers,
            echoless_form::Slices,
            echoless_form::Packets,
        ] {
            let form = form as u32;
            all.extend([
                Self::Null(form),
                Self::Misaligned(form),
                Self::TooMany(form),
            ]);
        }
        for form in [
            echoless_form::Fixed,
            echoless_form::Packed32,
            echoless_form::Packed64,
        ] {
            all.extend([Self::Null(form as u32), Self::TooMany(form as u32)]);
        }
        for offsets in [
            [0, 2, 1],
            [-1, 0, 1],
            [i32::MIN, 0, 1],
            [0, i32::MAX, 2],
            [0, 1, -1],
        ] {
            all.push(Self::Offsets32(offsets));
            all.push(Self::Offsets64(offsets.map(i64::from)));
        }
        all.push(Self::Offsets64([0, 1, i64::MAX]));
        all
    }

    /// The keys, in memory that is never freed.
    fn keys(self, world: &World) -> echoless_keys {
        let ids: &'static [u64] = Vec::from_iter(0..70).leak();
        let slices: &'static mut [echoless_slice] = vec![
            echoless_slice {
                data: ids.as_ptr().cast(),
                length: 8,
            };
            70
        ]
        .leak();
        let packets: &'static [echoless_packet] = vec![
            echoless_packet {
                data: ids.as_ptr().cast(),
                captured: 60,
                length: 60,
            };
            70
        ]
        .leak();
        // Each form with 70 keys, right.
        let of_form = |form: u32| {
            let mut right = numbers(ids);
            right.form = form;
            (right.width, right.stride) = (8, 8);
            if form == echoless_form::Slices as u32 {
                right.data = slices.as_ptr().cast();
            } else if form == echoless_form::Packets as u32 {
                right.data = packets.as_ptr().cast();
                right.extra = world.packet_keys.cast();
            } else if form == echoless_form::Packed32 as u32 {
                right.extra = Vec::from_iter((0..=70_i32).map(|index| 8 * index))
                    .leak()
                    .as_ptr()
                    .cast();
            } else if form == echoless_form::Packed64 as u32 {
                right.extra = Vec::from_iter((0..=70_i64).map(|index| 8 * index))
                    .leak()
                    .as_ptr()
                    .cast();
            }
            right
        };
        let packed = |form: echoless_form, offsets: *const c_void| echoless_keys {
            count: 2,
            extra: offsets,
            ..of_form(form as u32)
        };
        match self {
            Self::Form(form) => of_form(form),
            Self::Null(form) => echoless_keys {
                data: ptr::null(),
                ..of_form(form)
            },
            Self::Misaligned(form) => {
                let mut wrong = of_form(form);
                if wrong.extra.is_null() || form == echoless_form::Packets as u32 {
                    wrong.data = odd(wrong.data);
                } else {
                    wrong.extra = odd(wrong.extra);
                }
                wrong
            }
            Self::TooMany(form) => echoless_keys {
                count: usize::MAX,
                ..of_form(form)
            },
            Self::OddTicks => echoless_keys {
                ticks: odd(ids.as_ptr()),
                ..numbers(&ids[..69])
            },
            Self::NarrowStride => echoless_keys {
                stride: 7,
                ..of_form(echoless_form::Fixed as u32)
            },
            Self::WideStride => echoless_keys {
                stride: usize::MAX / 69,
                width: 100,
                ..of_form(echoless_form::Fixed as u32)
            },
            Self::NullSlice => {
                slices[69].data = ptr::null();
                keys(echoless_form::Slices, slices.as_ptr().cast(), 70)
            }
            Self::LongSlice => {
                slices[69].length = usize::MAX;
                keys(echoless_form::Slices, slices.as_ptr().cast(), 70)
            }
            Self::Offsets32(offsets) => packed(
                echoless_form::Packed32,
                offsets.to_vec().leak().as_ptr().cast(),
            ),
            Self::Offsets64(offsets) => packed(
                echoless_form::Packed64,
                offsets.to_vec().leak().as_ptr().cast(),
            ),
            Self::NoBytes => echoless_keys {
                data: ptr::null(),
                ..packed(
                    echoless_form::Packed32,
                    vec![0, 1, 2].leak().as_ptr().cast(),
                )
            },
            Self::NoOffsets => packed(echoless_form::Packed32, ptr::null()),
            Self::NoReader => echoless_keys {
                extra: ptr::null(),
                ..of_form(echoless_form::Packets as u32)
            },
            Self::OtherReader => echoless_keys {
                extra: world.filter.cast(),
                ..of_form(echoless_form::Packets as u32)
            },
            Self::NullPacket => {
                let packets: &mut [echoless_packet] = packets.to_vec().leak();
                packets[69].data = ptr::null();
                echoless_keys {
                    data: packets.as_ptr().cast(),
                    ..of_form(echoless_form::Packets as u32)
                }
            }
        }
    }
}

unsafe extern "C" fn write_nothing(_: *mut c_void, _: *const u8, _: usize) -> c_int {
    0
}

unsafe extern "C" fn read_nothing(
    _: *mut c_void,
    _: *mut u8,
    _: usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: the library passes a place.
    unsafe { *length = 0 };
    0
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();

    // Keys and the memory for their verdicts.
    macro_rules! judges {
        ($function:ident, $handle:ident) => {
            case!(cases, "no handle", w => $function(
                null(),
                w.good(),
                w.words.as_mut_ptr(),
                &raw mut w.count
            ));
            case!(cases, "another handle", w => $function(
                w.packet_keys.cast(),
                w.good(),
                w.words.as_mut_ptr(),
                &raw mut w.count
            ));
            for wrong in Wrong::all() {
                case!(cases, format!("{wrong:?}"), w => $function(
                    w.$handle,
                    wrong.keys(w),
                    w.words.as_mut_ptr(),
                    &raw mut w.count
                ));
            }
            case!(cases, "no words", w => $function(
                w.$handle,
                w.good(),
                null(),
                &raw mut w.count
            ));
            case!(cases, "odd words", w => $function(
                w.$handle,
                w.good(),
                odd(w.words.as_ptr()),
                &raw mut w.count
            ));
            case!(cases, "words at the end of the memory", w => $function(
                w.$handle,
                w.good(),
                ptr::without_provenance_mut(usize::MAX - 7),
                &raw mut w.count
            ));
            case!(cases, "odd count", w => $function(
                w.$handle,
                w.good(),
                w.words.as_mut_ptr(),
                odd(&raw const w.count)
            ));
            case!(cases, "the count in the words", w => $function(
                w.$handle,
                w.good(),
                w.words.as_mut_ptr(),
                w.words.as_mut_ptr().add(1)
            ));
            case!(cases, "the count in the keys", w => $function(
                w.$handle,
                w.good(),
                w.words.as_mut_ptr(),
                w.ids.as_mut_ptr().add(69)
            ));
            case!(cases, "the words in the keys", w => $function(
                w.$handle,
                w.good(),
                w.ids.as_mut_ptr().add(69),
                &raw mut w.count
            ));
            case!(cases, "the words in the ticks", w => $function(
                w.$handle,
                echoless_keys {
                    ticks: w.words.as_ptr(),
                    ..w.good()
                },
                w.words.as_mut_ptr().add(1),
                &raw mut w.count
            ));
        };
    }
    judges!(echoless_filter_observe, filter);
    judges!(echoless_filter_contains, filter);
    judges!(echoless_shared_observe, shared);
    judges!(echoless_shared_contains, shared);
    judges!(echoless_thread_observe, thread);
    for wrong in Wrong::all() {
        case!(cases, format!("{wrong:?}"), w => echoless_filter_hash(
            w.filter,
            wrong.keys(w),
            w.words.as_mut_ptr()
        ));
        case!(cases, format!("{wrong:?}"), w => echoless_port_submit(
            w.port,
            wrong.keys(w)
        ));
    }
    case!(cases, "no hashes", w => echoless_filter_hash(
        w.filter,
        w.good(),
        null()
    ));
    case!(cases, "odd hashes", w => echoless_filter_hash(
        w.filter,
        w.good(),
        odd(w.words.as_ptr())
    ));
    case!(cases, "the hashes in the keys", w => echoless_filter_hash(
        w.filter,
        w.good(),
        w.ids.as_mut_ptr()
    ));
    case!(cases, "no handle", w => echoless_filter_hash(
        null(),
        w.good(),
        w.words.as_mut_ptr()
    ));
    case!(cases, "no handle", w => echoless_port_submit(null(), w.good()));

    // A batch that is answered stays until it can be written.
    case!(cases, "few words", w => echoless_port_drain(
        w.port,
        w.words.as_mut_ptr(),
        0,
        &raw mut w.length,
        &raw mut w.count
    ));
    case!(cases, "no words", w => echoless_port_drain(
        w.port,
        null(),
        2,
        &raw mut w.length,
        &raw mut w.count
    ));
    case!(cases, "odd words", w => echoless_port_drain(
        w.port,
        odd(w.words.as_ptr()),
        2,
        &raw mut w.length,
        &raw mut w.count
    ));
    case!(cases, "too many words", w => echoless_port_drain(
        w.port,
        w.words.as_mut_ptr(),
        usize::MAX,
        &raw mut w.length,
        &raw mut w.count
    ));
    case!(cases, "odd number", w => echoless_port_drain(
        w.port,
        w.words.as_mut_ptr(),
        2,
        odd(&raw const w.length),
        &raw mut w.count
    ));
    case!(cases, "odd count", w => echoless_port_drain(
        w.port,
        w.words.as_mut_ptr(),
        2,
        &raw mut w.length,
        odd(&raw const w.count)
    ));
    case!(cases, "the count in the words", w => echoless_port_drain(
        w.port,
        w.words.as_mut_ptr(),
        2,
        &raw mut w.length,
        w.words.as_mut_ptr().add(1)
    ));
    case!(cases, "one place for both", w => echoless_port_drain(
        w.port,
        w.words.as_mut_ptr(),
        2,
        &raw mut w.length,
        (&raw mut w.length).cast()
    ));
    case!(cases, "no handle", w => echoless_port_drain(
        null(),
        w.words.as_mut_ptr(),
        2,
        &raw mut w.length,
        &raw mut w.count
    ));

    // Reports. A shutdown without a place for its report has not shut down.
    macro_rules! reports {
        ($function:ident, $handle:ident) => {
            case!(cases, "odd report", w => $function(
                w.$handle,
                odd(&raw const w.report)
            ));
            case!(cases, "no size", w => $function(w.$handle, &raw mut w.short));
            case!(cases, "no handle", w => $function(null(), &raw mut w.report));
            case!(cases, "another handle", w => $function(
                w.packet_keys.cast(),
                &raw mut w.report
            ));
        };
    }
    reports!(echoless_filter_report, filter);
    reports!(echoless_shared_report, shared);
    reports!(echoless_ordered_report, ordered);
    reports!(echoless_engine_report, engine);
    reports!(echoless_engine_shutdown, engine);
    case!(cases, "no report", w => echoless_filter_report(
        w.filter,
        null()
    ));
    case!(cases, "no report", w => echoless_shared_report(
        w.shared,
        null()
    ));
    case!(cases, "no report", w => echoless_ordered_report(
        w.ordered,
        null()
    ));
    case!(cases, "no report", w => echoless_engine_report(
        w.engine,
        null()
    ));

    // New handles.
    let spec = LINES.as_ptr();
    let default: *const echoless_hashing = ptr::null();
    macro_rules! makes {
        ($function:ident, |$spec:ident, $hashing:ident, $out:ident| ($($argument:expr),*)) => {
            makes!(@one $function, "no text",
                $spec = ptr::null(), $hashing = default, $out = |w| (&raw mut w.out).cast(), ($($argument),*));
            makes!(@one $function, "no UTF-8",
                $spec = c"\xff".as_ptr(), $hashing = default, $out = |w| (&raw mut w.out).cast(), ($($argument),*));
            makes!(@one $function, "no filter",
                $spec = c"\n\x1b[2J".as_ptr(), $hashing = default, $out = |w| (&raw mut w.out).cast(), ($($argument),*));
            makes!(@one $function, "odd hashing",
                $spec = spec, $hashing = odd(default.wrapping_add(1)), $out = |w| (&raw mut w.out).cast(), ($($argument),*));
            makes!(@one $function, "no place",
                $spec = spec, $hashing = default, $out = |_w| ptr::null_mut(), ($($argument),*));
            makes!(@one $function, "odd place",
                $spec = spec, $hashing = default, $out = |w| odd(&raw const w.out).cast(), ($($argument),*));
        };
        (@one $function:ident, $what:expr, $spec:ident = $a:expr, $hashing:ident = $b:expr,
            $out:ident = |$w:ident| $c:expr, ($($argument:expr),*)) => {{
            let ($spec, $hashing): (*const c_char, *const echoless_hashing) = ($a, $b);
            cases.push(Case {
                function: stringify!($function),
                what: $what.to_owned(),
                run: Box::new(move |$w: &mut World| {
                    let $out = $c;
                    // SAFETY: as in `case`.
                    unsafe { $function($($argument),*) }
                }),
            });
        }};
    }
    makes!(echoless_filter_new, |spec, hashing, out| (
        spec, hashing, out
    ));
    makes!(echoless_shared_new, |spec, hashing, out| (
        spec, hashing, out
    ));
    makes!(echoless_ordered_new, |spec, hashing, out| (
        spec, hashing, 2, out
    ));
    makes!(echoless_engine_new, |spec, hashing, out| (
        spec, hashing, 2, out
    ));
    for partitions in [0, usize::MAX] {
        case!(cases, format!("{partitions} partitions"), w => echoless_ordered_new(spec, default, partitions, (&raw mut w.out).cast()));
        case!(cases, format!("{partitions} partitions"), w => echoless_engine_new(spec, default, partitions, (&raw mut w.out).cast()));
    }
    case!(cases, "no place", w => echoless_thread_new(w.ordered, null()));
    case!(cases, "odd place", w => echoless_thread_new(
        w.ordered,
        odd(&raw const w.out).cast()
    ));
    case!(cases, "no handle", w => echoless_thread_new(
        null(),
        (&raw mut w.out).cast()
    ));
    case!(cases, "no place", w => echoless_port_new(w.engine, null()));
    case!(cases, "odd place", w => echoless_port_new(
        w.engine,
        odd(&raw const w.out).cast()
    ));
    case!(cases, "no handle", w => echoless_port_new(
        null(),
        (&raw mut w.out).cast()
    ));
    let options = |from: &'static CStr| echoless_packet_options {
        link_type: 1,
        from: from.as_ptr(),
        ignore: ptr::null(),
        group: ptr::null(),
        payload_bytes: 0,
        snap_safe: 0,
        skip_bytes: 0,
    };
    case!(cases, "no place", _w => echoless_packet_keys_new(
        ptr::null(),
        null()
    ));
    case!(cases, "odd place", w => echoless_packet_keys_new(
        ptr::null(),
        odd(&raw const w.out).cast()
    ));
    case!(cases, "odd options", w => echoless_packet_keys_new(
        odd(&options(c"link")),
        (&raw mut w.out).cast()
    ));
    case!(cases, "no layer", w => echoless_packet_keys_new(
        &options(c"a\nb"),
        (&raw mut w.out).cast()
    ));

    // Texts and numbers.
    case!(cases, "few bytes", w => echoless_filter_spec(
        w.filter,
        w.text(),
        5,
        null()
    ));
    case!(cases, "no bytes", w => echoless_filter_spec(
        w.filter,
        null(),
        200,
        &raw mut w.length
    ));
    case!(cases, "too many bytes", w => echoless_filter_spec(
        w.filter,
        w.text(),
        usize::MAX,
        &raw mut w.length
    ));
    case!(cases, "odd length", w => echoless_filter_spec(
        w.filter,
        w.text(),
        200,
        odd(&raw const w.length)
    ));
    case!(cases, "the length in the text", w => echoless_filter_spec(
        w.filter,
        w.words.as_mut_ptr().cast(),
        200,
        w.words.as_mut_ptr().cast()
    ));
    case!(cases, "no handle", w => echoless_filter_spec(
        null(),
        w.text(),
        200,
        &raw mut w.length
    ));
    case!(cases, "odd number", w => echoless_filter_lines(
        w.filter,
        odd(&raw const w.count)
    ));
    case!(cases, "no handle", w => echoless_filter_lines(
        null(),
        &raw mut w.count
    ));

    // States.
    let here = c"/nowhere/at/all".as_ptr();
    macro_rules! saves {
        ($function:ident, $handle:ident) => {
            case!(cases, "no path", w => $function(
                w.$handle,
                ptr::null(),
                b"".as_ptr(),
                0
            ));
            case!(cases, "no bytes", w => $function(w.$handle, here, null(), 4));
            case!(cases, "too many bytes", w => $function(
                w.$handle,
                here,
                b"".as_ptr(),
                usize::MAX
            ));
            case!(cases, "no handle", _w => $function(
                null(),
                here,
                b"".as_ptr(),
                0
            ));
            case!(cases, "no folder", w => $function(
                w.$handle,
                here,
                b"".as_ptr(),
                0
            ));
        };
    }
    saves!(echoless_filter_save_file, filter);
    saves!(echoless_shared_save_file, shared);
    case!(cases, "no path", w => echoless_ordered_save_file(
        w.ordered,
        ptr::null(),
        None,
        None,
        null()
    ));
    case!(cases, "no handle", _w => echoless_ordered_save_file(
        null(),
        here,
        None,
        None,
        null()
    ));
    case!(cases, "no function", w => echoless_filter_save_part(
        w.filter,
        0,
        1024,
        b"".as_ptr(),
        0,
        None,
        null()
    ));
    case!(cases, "no bytes", w => echoless_filter_save_part(
        w.filter,
        0,
        1024,
        null(),
        1,
        Some(write_nothing),
        null()
    ));
    for (first, end) in [
        (5, 5),
        (6, 5),
        (0, 1025),
        (0, u64::MAX),
        (u64::MAX, u64::MAX),
    ] {
        case!(cases, format!("{first}..{end}"), w => echoless_filter_save_part(w.filter, first, end, null(), 0, Some(write_nothing), null()));
    }
    macro_rules! loads {
        ($function:ident, $state:literal $(, $partitions:literal)?) => {
            case!(cases, "no path", w => $function(
                null(), null(), $($partitions,)? u64::MAX, w.bytes.as_mut_ptr(), 200, &raw mut w.length,
                (&raw mut w.out).cast()));
            case!(cases, "odd hashing", w => $function(
                w.states[$state].as_ptr(), odd(default.wrapping_add(1)), $($partitions,)? u64::MAX,
                w.bytes.as_mut_ptr(), 200, &raw mut w.length, (&raw mut w.out).cast()));
            case!(cases, "no place", w => $function(
                w.states[$state].as_ptr(), null(), $($partitions,)? u64::MAX, w.bytes.as_mut_ptr(), 200,
                &raw mut w.length, null()));
            case!(cases, "odd place", w => $function(
                w.states[$state].as_ptr(), null(), $($partitions,)? u64::MAX, w.bytes.as_mut_ptr(), 200,
                &raw mut w.length, odd(&raw const w.out).cast()));
            case!(cases, "odd length", w => $function(
                w.states[$state].as_ptr(), null(), $($partitions,)? u64::MAX, w.bytes.as_mut_ptr(), 200,
                odd(&raw const w.length), (&raw mut w.out).cast()));
            case!(cases, "few bytes", w => $function(
                w.states[$state].as_ptr(), null(), $($partitions,)? u64::MAX, w.bytes.as_mut_ptr(), 3, null(),
                (&raw mut w.out).cast()));
            case!(cases, "too many bytes", w => $function(
                w.states[$state].as_ptr(), null(), $($partitions,)? u64::MAX, w.bytes.as_mut_ptr(),
                usize::MAX, &raw mut w.length, (&raw mut w.out).cast()));
            case!(cases, "the length in the handle", w => $function(
                w.states[$state].as_ptr(), null(), $($partitions,)? u64::MAX, w.bytes.as_mut_ptr(), 200,
                (&raw mut w.out).cast(), (&raw mut w.out).cast()));
            case!(cases, "little memory", w => $function(
                w.states[$state].as_ptr(), null(), $($partitions,)? 63, w.bytes.as_mut_ptr(), 200,
                null(), (&raw mut w.out).cast()));
        };
    }
    loads!(echoless_filter_load_file, 0);
    loads!(echoless_shared_load_file, 1);
    loads!(echoless_ordered_load_file, 0, 2);
    case!(cases, "no partitions", w => echoless_ordered_load_file(
        w.states[0].as_ptr(),
        null(),
        0,
        u64::MAX,
        null(),
        0,
        null(),
        (&raw mut w.out).cast()
    ));
    let context: &'static [*mut c_void] = vec![ptr::null_mut(); 2].leak();
    let read: echoless_read = Some(read_nothing);
    case!(cases, "no function", w => echoless_filter_load_parts(
        None,
        context.as_ptr(),
        1,
        null(),
        u64::MAX,
        null(),
        0,
        null(),
        (&raw mut w.out).cast()
    ));
    case!(cases, "no contexts", w => echoless_filter_load_parts(
        read,
        null(),
        1,
        null(),
        u64::MAX,
        null(),
        0,
        null(),
        (&raw mut w.out).cast()
    ));
    case!(cases, "odd contexts", w => echoless_filter_load_parts(
        read,
        odd(context.as_ptr()),
        1,
        null(),
        u64::MAX,
        null(),
        0,
        null(),
        (&raw mut w.out).cast()
    ));
    case!(cases, "too many contexts", w => echoless_filter_load_parts(
        read,
        context.as_ptr(),
        usize::MAX,
        null(),
        u64::MAX,
        null(),
        0,
        null(),
        (&raw mut w.out).cast()
    ));
    case!(cases, "no parts", w => echoless_filter_load_parts(
        read,
        context.as_ptr(),
        0,
        null(),
        u64::MAX,
        null(),
        0,
        null(),
        (&raw mut w.out).cast()
    ));
    case!(cases, "empty parts", w => echoless_filter_load_parts(
        read,
        context.as_ptr(),
        2,
        null(),
        u64::MAX,
        null(),
        0,
        null(),
        (&raw mut w.out).cast()
    ));
    case!(cases, "odd place", w => echoless_filter_load_parts(
        read,
        context.as_ptr(),
        1,
        null(),
        u64::MAX,
        null(),
        0,
        null(),
        odd(&raw const w.out).cast()
    ));

    // Nothing but a handle, which is of another kind, or NULL where that has a meaning.
    macro_rules! handles {
        ($($function:ident($($argument:expr),*)),* $(,)?) => {$(
            case!(cases, "another handle", w => $function(w.other() $(, $argument)*));
            case!(cases, "no handle", _w => $function(
                ptr::without_provenance_mut(0x4711) $(, $argument)*));
        )*};
    }
    handles!(
        echoless_filter_advance(7),
        echoless_filter_clear(),
        echoless_filter_free(),
        echoless_shared_clear(),
        echoless_shared_free(),
        echoless_ordered_free(),
        echoless_thread_take(),
        echoless_thread_wait(1),
        echoless_thread_leave(),
        echoless_thread_free(),
        echoless_engine_free(),
        echoless_port_wait(1),
        echoless_port_free(),
    );
    case!(cases, "another handle", w => echoless_packet_keys_free(
        w.filter.cast()
    ));
    cases
}

#[test]
fn a_wrong_argument_is_one_line_and_changes_nothing() {
    let mut world = World::new();
    // A batch whose verdicts nothing takes before the end.
    ok!(echoless_port_submit(world.port, world.good()));
    ok!(echoless_port_wait(world.port, 60_000));
    let (observed, written) = (world.observed(), world.written());
    for case in cases() {
        let name = format!("{} with {}", case.function, case.what);
        let status = (case.run)(&mut world);
        assert!(status != 0, "{name}: no error");
        let text = last_error();
        assert!(status != 15, "{name}: {text}");
        assert!(!text.chars().any(char::is_control), "{name}: {text:?}");
        assert!(text.len() > 10 && text.len() < 300, "{name}: {text}");
        assert!(world.written() == written, "{name}: a place was written");
        assert_eq!(world.observed(), observed, "{name}: keys were recorded");
    }
    let (words, length) = (world.words.as_mut_ptr(), &raw mut world.length);
    ok!(echoless_port_drain(
        world.port,
        words,
        2,
        length,
        ptr::null_mut()
    ));
    assert_eq!(world.length, 70);
    world.works();
}

/// Each function of the header is in the table, but for those that no argument can make fail.
#[test]
fn the_table_has_every_function() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/echoless.h");
    let header = fs::read_to_string(header).unwrap();
    let functions: BTreeSet<&str> = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '*', '#']) && !line.contains("inline"))
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("echoless_"))
        .collect();
    assert!(functions.len() > 30, "{functions:?}");
    let cases = cases();
    let tested: BTreeSet<&str> = cases.iter().map(|case| case.function).collect();
    let missing: Vec<_> = functions.difference(&tested).collect();
    assert_eq!(missing, [&"echoless_last_error", &"echoless_version"]);
}
