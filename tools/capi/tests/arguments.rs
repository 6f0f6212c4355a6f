//! Each function of the table of calls with each wrong argument: an error of one line, after which
//! nothing was recorded, no place was written, and the next call works. Each also with handles of
//! all kinds.

#![allow(unsafe_code)] // calls of the C interface

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use echoless_c::exports::{self, Function, Parameter, echoless_last_error, functions};
use echoless_c::types::*;
use echoless_foreign::{Code, ReportFields};

const LINES: &CStr = c"fingerprint:fpr=1e-8,memory=64KiB";
const ROWS: &CStr = c"row4x16:memory=64KiB";
const UNTOUCHED: u64 = 0x5555_5555_5555_5555;
/// The words of the caller for the bits of 70 keys, and a few more.
const WORDS: usize = 80;

/// The kinds of handles, which are their numbers in [`World::handles`].
const FILTER: usize = 0;
const SHARED: usize = 1;
const ORDERED: usize = 2;
const ENGINE: usize = 3;
const EXACT: usize = 4;
const THREAD: usize = 5;
const PORT: usize = 6;
const READER: usize = 7;

/// The kinds that a function takes.
fn kinds_of(function: &str) -> &'static [usize] {
    match function {
        "observe" => &[FILTER, SHARED, EXACT, THREAD],
        "contains" | "clear" | "advance" => &[FILTER, SHARED, EXACT],
        "hash" => &[FILTER, SHARED, ORDERED, ENGINE, EXACT, THREAD, PORT],
        "lines" => &[FILTER],
        "memory_bytes" | "read_report" | "spec" => &[FILTER, SHARED, ORDERED, ENGINE, EXACT],
        "take" | "leave" => &[THREAD],
        "wait" => &[THREAD, PORT],
        "open" => &[ORDERED, ENGINE],
        "submit" | "drain" => &[PORT],
        "save" => &[FILTER, SHARED, ORDERED, EXACT],
        "save_at" => &[ORDERED],
        "shutdown" => &[ENGINE],
        "free" => &[FILTER, SHARED, ORDERED, ENGINE, EXACT, THREAD, PORT, READER],
        // The kind is an argument, or there is one only.
        "new" => &[FILTER, SHARED, ORDERED, ENGINE, EXACT],
        // The folder of a filter without errors is in use.
        "load" => &[FILTER, SHARED, ORDERED],
        "packet_keys" => &[READER],
        other => panic!("which kinds does {other} take?"),
    }
}

/// A value in memory that is never freed.
fn at<T>(value: T) -> *const c_void {
    ptr::from_ref(Box::leak(Box::new(value))).cast()
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
    let data = numbers.as_ptr().cast();
    keys(echoless_form::Numbers, data, numbers.len())
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

/// What calls can write, at one address.
#[derive(Clone, PartialEq, Debug)]
#[repr(C)]
struct Written {
    words: [u64; WORDS],
    count: u64,
    length: usize,
    bytes: [u64; 25],
    out: usize,
    report: ReportFields,
    /// One that is too short for its own size.
    short: ReportFields,
    ids: [u64; 70],
}

/// A handle of each kind, and the memory of a caller.
struct World {
    handles: [*mut echoless_handle; 8],
    memory: Box<Written>,
    /// The states of each kind that has some.
    states: [CString; 5],
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = |name: &str| {
            let path = folder.path().join(name);
            CString::new(path.to_str().unwrap()).unwrap()
        };
        let mut world = Self {
            handles: [ptr::null_mut(); 8],
            memory: Box::new(Written {
                words: [UNTOUCHED; WORDS],
                count: UNTOUCHED,
                length: UNTOUCHED as usize,
                bytes: [UNTOUCHED; 25],
                out: UNTOUCHED as usize,
                report: empty_report(),
                short: ReportFields {
                    size: 7,
                    ..empty_report()
                },
                ids: std::array::from_fn(|id| id as u64),
            }),
            states: ["filter", "shared", "ordered", "none", "exact"].map(state),
            _folder: folder,
        };
        for kind in [FILTER, SHARED, ORDERED, ENGINE, EXACT, READER] {
            let name = if kind == READER { "packet_keys" } else { "new" };
            world.handles[kind] = world.made(name, kind);
        }
        for (kind, owner) in [(THREAD, ORDERED), (PORT, ENGINE)] {
            world.handles[kind] = world.made("open", owner);
        }
        for kind in [FILTER, SHARED, ORDERED, EXACT] {
            world.works("save", kind);
        }
        // A batch whose verdicts nothing takes before the end.
        world.works("submit", PORT);
        world.works("wait", PORT);
        world
    }

    /// The arguments of a call that works.
    fn good(&mut self, function: &Function, kind: usize) -> Vec<*const c_void> {
        let arguments = function.arguments.iter();
        arguments
            .map(|argument| self.good_argument(argument, kind))
            .collect()
    }

    fn good_argument(&mut self, argument: &Parameter, kind: usize) -> *const c_void {
        let memory = &mut *self.memory;
        match argument.role {
            "Instance" => at(self.handles[kind]),
            "Kind" => at(kind as u32 + 1),
            "Text" => at(if kind == SHARED { ROWS } else { LINES }.as_ptr()),
            "Count" => at(if [ORDERED, ENGINE].contains(&kind) {
                2_usize
            } else {
                1
            }),
            "Number" if argument.name == "memory_limit" => at(u64::MAX),
            "Number" => at(60_000_u64),
            "Hashing" | "PacketOptions" => at(ptr::null::<c_void>()),
            "Keys" => at(numbers(&memory.ids)),
            "Verdicts" | "Hashes" => at(memory.words.as_mut_ptr()),
            "Words" => at(self.room(WORDS * 8)),
            "OptionalNumber" => at(&raw mut memory.count),
            "OptionalCount" => at(&raw mut memory.length),
            "Handle" | "PacketHandle" => at(&raw mut memory.out),
            "Report" | "OptionalReport" => at(&raw mut memory.report),
            "TextRoom" | "OptionalRoom" => at(self.byte_room(200)),
            "Bytes" => at(echoless_slice {
                data: b"at 7".as_ptr(),
                length: 4,
            }),
            "Target" => at(to_file(&self.states[kind])),
            "Source" => at(from_file(&self.states[kind])),
            "Cut" => at(cut(None)),
            other => panic!("what is a good {other}?"),
        }
    }

    fn room(&mut self, capacity: usize) -> echoless_room {
        echoless_room {
            data: self.memory.words.as_mut_ptr().cast(),
            capacity,
            length: ptr::null_mut(),
        }
    }

    fn byte_room(&mut self, capacity: usize) -> echoless_room {
        echoless_room {
            data: self.memory.bytes.as_mut_ptr().cast(),
            capacity,
            length: &raw mut self.memory.length,
        }
    }

    /// Runs a call that works.
    fn works(&mut self, name: &str, kind: usize) {
        let function = functions().find(|function| function.name == name);
        let function = function.expect("a function of this name");
        let arguments = self.good(function, kind);
        // SAFETY: the arguments are right.
        let status = unsafe { (function.call)(&arguments) };
        assert_eq!(status, 0, "{name}: {}", last_error());
    }

    /// The handle that a call makes.
    fn made(&mut self, name: &str, kind: usize) -> *mut echoless_handle {
        self.works(name, kind);
        ptr::without_provenance_mut(std::mem::replace(&mut self.memory.out, UNTOUCHED as usize))
    }

    /// The keys that each filter has recorded.
    fn recorded(&self) -> [u64; 5] {
        [FILTER, SHARED, ORDERED, ENGINE, EXACT].map(|kind| {
            let mut report = empty_report();
            let handle = exports_handle(self.handles[kind]);
            // SAFETY: the report has the size that it says.
            let status = unsafe {
                exports::read_report(handle, echoless_c::argument::Report(&raw mut report))
            };
            assert_eq!(status, 0, "{}", last_error());
            report.fresh
        })
    }

    /// The arguments of a role that are wrong in one way each, and why. What they write would be
    /// seen.
    fn wrong(
        &mut self,
        function: &Function,
        argument: &Parameter,
        kind: usize,
    ) -> Vec<(String, *const c_void)> {
        let mut wrong = Vec::new();
        let mut add = |what: &str, value| wrong.push((what.to_owned(), value));
        let has = |role| function.arguments.iter().any(|other| other.role == role);
        let (room, byte_room) = (self.room(WORDS * 8), self.byte_room(200));
        let memory = &mut *self.memory;
        let (words, ids) = (memory.words.as_mut_ptr(), memory.ids.as_mut_ptr());
        match argument.role {
            "Kind" => {
                for kind in [0, 6, u32::MAX] {
                    add(&kind.to_string(), at(kind));
                }
            }
            "Text" => {
                add("no text", at(ptr::null::<c_char>()));
                add("no UTF-8", at(c"\xff".as_ptr()));
                add("no filter", at(c"\n\x1b[2J".as_ptr()));
            }
            "Count" => {
                for count in [0, usize::MAX] {
                    add(&count.to_string(), at(count));
                }
            }
            "Number" if argument.name == "memory_limit" => add("little memory", at(63_u64)),
            "Hashing" => add("odd", at(odd(ids.cast::<echoless_hashing>()))),
            "PacketOptions" => {
                let options = echoless_packet_options {
                    link_type: 1,
                    from: c"a\nb".as_ptr(),
                    ignore: ptr::null(),
                    group: ptr::null(),
                    payload_bytes: 0,
                    snap_safe: 0,
                    skip_bytes: 0,
                };
                add("odd", at(odd(&options)));
                add("no layer", at(at(options)));
            }
            "Keys" => {
                for kind in Wrong::all() {
                    let what = format!("{kind:?}");
                    wrong.push((what, at(kind.keys(self))));
                }
                if has("Verdicts") {
                    let ticks = self.memory.words.as_ptr();
                    let keys = echoless_keys {
                        ticks,
                        ..numbers(&self.memory.ids)
                    };
                    wrong.push(("ticks in the words".to_owned(), at(keys)));
                }
            }
            "Verdicts" | "Hashes" => {
                add("NULL", at(ptr::null::<u64>()));
                add("odd", at(odd(words)));
                add("the end of memory", at(usize::MAX - 7));
                add("in the keys", at(ids.wrapping_add(69)));
            }
            "Words" => {
                add(
                    "few",
                    at(echoless_room {
                        capacity: 8,
                        ..room
                    }),
                );
                add(
                    "none",
                    at(echoless_room {
                        capacity: 0,
                        ..room
                    }),
                );
                add(
                    "NULL",
                    at(echoless_room {
                        data: ptr::null_mut(),
                        ..room
                    }),
                );
                add(
                    "odd",
                    at(echoless_room {
                        data: odd(room.data),
                        ..room
                    }),
                );
                add(
                    "too many",
                    at(echoless_room {
                        capacity: usize::MAX,
                        ..room
                    }),
                );
            }
            "OptionalNumber" => {
                add("odd", at(odd(&raw const memory.count)));
                if has("Verdicts") || has("Words") {
                    add("in the words", at(words.wrapping_add(1)));
                }
                if has("Keys") {
                    add("in the keys", at(ids.wrapping_add(69)));
                }
                if has("OptionalCount") {
                    add("one place for both", at(&raw mut memory.length));
                }
            }
            "OptionalCount" => add("odd", at(odd(&raw const memory.length))),
            "Handle" | "PacketHandle" => {
                add("NULL", at(ptr::null::<c_void>()));
                add("odd", at(odd(&raw const memory.out)));
            }
            "Report" | "OptionalReport" => {
                if argument.role == "Report" {
                    add("NULL", at(ptr::null::<c_void>()));
                }
                add("odd", at(odd(&raw const memory.report)));
                add("no size", at(&raw mut memory.short));
            }
            "TextRoom" | "OptionalRoom" => {
                let length = ptr::null_mut();
                add(
                    "few bytes",
                    at(echoless_room {
                        capacity: 3,
                        length,
                        ..byte_room
                    }),
                );
                add(
                    "too many",
                    at(echoless_room {
                        capacity: usize::MAX,
                        ..byte_room
                    }),
                );
                let length = odd(byte_room.length);
                add(
                    "odd length",
                    at(echoless_room {
                        length,
                        ..byte_room
                    }),
                );
                let length = byte_room.data.cast();
                add(
                    "its length in it",
                    at(echoless_room {
                        length,
                        ..byte_room
                    }),
                );
                if argument.role == "TextRoom" {
                    add(
                        "NULL",
                        at(echoless_room {
                            data: ptr::null_mut(),
                            ..byte_room
                        }),
                    );
                } else {
                    let length = &raw mut memory.out;
                    add(
                        "its length in the handle",
                        at(echoless_room {
                            length,
                            ..byte_room
                        }),
                    );
                }
            }
            "Bytes" => {
                let data = ptr::null();
                add("NULL", at(echoless_slice { data, length: 4 }));
                let data = b"".as_ptr();
                add(
                    "too many",
                    at(echoless_slice {
                        data,
                        length: usize::MAX,
                    }),
                );
            }
            "Target" => {
                let none = to_file(c"");
                add(
                    "nothing",
                    at(echoless_target {
                        path: ptr::null(),
                        ..none
                    }),
                );
                add("nowhere", at(to_file(c"/nowhere/at/all")));
                for (first, end) in [
                    (5, 5),
                    (6, 5),
                    (0, 1025),
                    (1, u64::MAX),
                    (u64::MAX, u64::MAX),
                ] {
                    let target = echoless_target {
                        path: ptr::null(),
                        write: Some(write_nothing),
                        first,
                        end,
                        ..none
                    };
                    add(&format!("{first}..{end}"), at(target));
                }
            }
            "Source" => {
                add("nothing", at(parts(None, &[ptr::null_mut()], 1)));
                add("nowhere", at(from_file(c"/nowhere/at/all")));
                let other = if kind == SHARED { FILTER } else { SHARED };
                add("another state", at(from_file(&self.states[other])));
                let contexts: &'static [_] = vec![ptr::null_mut(); 2].leak();
                let read: echoless_read = Some(read_nothing);
                let two = parts(read, contexts, 2);
                add(
                    "no contexts",
                    at(echoless_source {
                        contexts: ptr::null(),
                        ..two
                    }),
                );
                let contexts = odd(two.contexts);
                add("odd contexts", at(echoless_source { contexts, ..two }));
                add(
                    "too many",
                    at(echoless_source {
                        count: usize::MAX,
                        ..two
                    }),
                );
                add("no parts", at(echoless_source { count: 0, ..two }));
                add("empty parts", at(two));
            }
            "Cut" => add("a failure", at(cut(Some(read_wrongly)))),
            _ => {}
        }
        wrong
    }
}

fn exports_handle(handle: *const echoless_handle) -> echoless_c::argument::Instance {
    echoless_c::argument::Instance(handle)
}

impl Drop for World {
    fn drop(&mut self) {
        for kind in [PORT, ENGINE, THREAD, ORDERED, SHARED, FILTER, EXACT, READER] {
            self.works("free", kind);
        }
    }
}

fn to_file(path: &CStr) -> echoless_target {
    echoless_target {
        path: path.as_ptr(),
        write: None,
        context: ptr::null_mut(),
        first: 0,
        end: u64::MAX,
    }
}

fn from_file(path: &CStr) -> echoless_source {
    echoless_source {
        path: path.as_ptr(),
        ..parts(None, &[], 0)
    }
}

fn parts(read: echoless_read, contexts: &[*mut c_void], count: usize) -> echoless_source {
    echoless_source {
        path: ptr::null(),
        read,
        contexts: contexts.as_ptr(),
        count,
    }
}

fn cut(position: echoless_read) -> echoless_cut {
    echoless_cut {
        before: None,
        position,
        context: ptr::null_mut(),
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

unsafe extern "C" fn read_wrongly(
    _: *mut c_void,
    _: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: the library passes a place.
    unsafe { *length = capacity + 1 };
    0
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
                right.extra = world.handles[READER].cast();
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
                extra: world.handles[FILTER].cast(),
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

/// Runs a call that must fail, and checks that it has changed nothing.
fn fails(world: &World, function: &Function, arguments: &[*const c_void], what: &str) -> String {
    let name = format!("{} with {what}", function.name);
    let (recorded, written) = (world.recorded(), world.memory.clone());
    // SAFETY: what the pointers of the case do not have, the function must find out.
    let status = unsafe { (function.call)(arguments) };
    assert!(status != 0, "{name}: no error");
    let text = last_error();
    assert!(status != Code::Panicked.number(), "{name}: {text}");
    assert!(!text.chars().any(char::is_control), "{name}: {text:?}");
    assert!(text.len() > 10 && text.len() < 300, "{name}: {text}");
    assert!(world.memory == written, "{name}: a place was written");
    assert_eq!(world.recorded(), recorded, "{name}: keys were recorded");
    text
}

#[test]
fn a_wrong_argument_is_one_line_and_changes_nothing() {
    let mut world = World::new();
    for function in functions() {
        let mut cases = 0;
        for kind in kinds_of(function.name) {
            for (index, argument) in function.arguments.iter().enumerate() {
                for (what, value) in world.wrong(function, argument, *kind) {
                    let mut arguments = world.good(function, *kind);
                    arguments[index] = value;
                    let what = format!("{} of kind {kind}: {what}", argument.name);
                    fails(&world, function, &arguments, &what);
                    cases += 1;
                }
            }
        }
        let takes_a_handle_alone = matches!(function.arguments, [_])
            || function
                .arguments
                .iter()
                .all(|argument| matches!(argument.role, "Instance" | "Number"));
        assert!(cases > 0 || takes_a_handle_alone, "{}", function.name);
    }
    // The batch that was answered before is still there, and everything works.
    world.works("drain", PORT);
    assert_eq!((world.memory.length, world.memory.count), (70, 0));
    for expected in [0, 70] {
        for kind in [FILTER, SHARED, EXACT, THREAD] {
            world.works("observe", kind);
            assert_eq!(world.memory.count, expected);
        }
        world.works("submit", PORT);
        world.works("drain", PORT);
        // It has observed the batch before.
        assert_eq!((world.memory.length, world.memory.count), (70, 70));
    }
}

/// NULL, a freed handle, what never was one, and one of another kind.
#[test]
fn a_wrong_handle_is_an_error() {
    let mut world = World::new();
    let freed = world.made("open", ORDERED);
    let free = functions()
        .find(|function| function.name == "free")
        .unwrap();
    // SAFETY: it is a handle.
    assert_eq!(unsafe { (free.call)(&[at(freed)]) }, 0);
    for function in functions() {
        let Some(Parameter {
            role: "Instance", ..
        }) = function.arguments.first()
        else {
            continue;
        };
        let right = kinds_of(function.name);
        let mut arguments = world.good(function, right[0]);
        for (what, handle) in [
            ("NULL", ptr::null_mut()),
            ("a freed one", freed),
            ("no handle", ptr::without_provenance_mut(0x4711)),
        ] {
            if !(what == "NULL" && function.name == "free") {
                arguments[0] = at(handle);
                let text = fails(&world, function, &arguments, what);
                assert!(text.starts_with("invalid handle="), "{text}");
            }
        }
        for kind in (FILTER..=READER).filter(|kind| !right.contains(kind)) {
            arguments[0] = at(world.handles[kind]);
            let text = fails(&world, function, &arguments, &format!("kind {kind}"));
            assert!(text.starts_with("invalid handle="), "{text}");
        }
    }
}
