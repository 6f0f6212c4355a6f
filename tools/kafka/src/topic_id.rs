//! The id of a topic, which changes when a topic is created anew under its name. The safe bindings
//! of librdkafka do not have this call.

#![allow(unsafe_code)] // calls of librdkafka, and what they return

use std::ffi::{CStr, CString};
use std::time::Duration;

use rdkafka::bindings as librdkafka;
use rdkafka::client::{Client, ClientContext};

/// An id that is none, of brokers before 2.8.
const NO_ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// Returns the id of a topic in Base64; `None` if the brokers do not tell it within a time.
pub(crate) fn topic_id<C: ClientContext>(
    client: &Client<C>,
    topic: &str,
    patience: Duration,
) -> Option<String> {
    let name = CString::new(topic).ok()?;
    let patience = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the client outlives all calls. The collection copies the name, and the call copies
    // the collection, which is destroyed behind it. The event is destroyed once and after all that
    // is borrowed from it; each pointer is checked, and the only result belongs to the only name.
    let id = unsafe {
        let mut names = [name.as_ptr()];
        let topics = librdkafka::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), 1);
        let queue = librdkafka::rd_kafka_queue_new(client.native_ptr());
        librdkafka::rd_kafka_DescribeTopics(client.native_ptr(), topics, std::ptr::null(), queue);
        librdkafka::rd_kafka_TopicCollection_destroy(topics);
        let event = librdkafka::rd_kafka_queue_poll(queue, patience);
        let id = if event.is_null() { None } else { id_of(event) };
        if !event.is_null() {
            librdkafka::rd_kafka_event_destroy(event);
        }
        // What arrives later is dropped.
        librdkafka::rd_kafka_queue_destroy(queue);
        id
    };
    id.filter(|id| id != NO_ID)
}

/// The id in an answer about one topic.
///
/// # Safety
/// The event must be one of librdkafka, and live.
unsafe fn id_of(event: *mut librdkafka::rd_kafka_event_t) -> Option<String> {
    // SAFETY: the event is live, and so is all that it has; text ends with NUL.
    unsafe {
        let result = librdkafka::rd_kafka_event_DescribeTopics_result(event);
        if result.is_null() {
            return None;
        }
        let mut count = 0;
        let topics = librdkafka::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        if topics.is_null() || count != 1 {
            return None;
        }
        let id = librdkafka::rd_kafka_TopicDescription_topic_id(*topics);
        if id.is_null() {
            return None;
        }
        let text = librdkafka::rd_kafka_Uuid_base64str(id);
        if text.is_null() {
            return None;
        }
        CStr::from_ptr(text).to_str().ok().map(str::to_owned)
    }
}
