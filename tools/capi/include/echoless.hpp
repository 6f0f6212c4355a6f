/* echoless for C++17: echoless.h with handles that free themselves, and exceptions.
 *
 *     echoless::filter filter("fingerprint:fpr=1e-8,memory=64MiB");
 *     echoless::verdicts verdicts;
 *     filter.observe(echoless_numbers(ids.data(), ids.size()), verdicts);
 *     if (verdicts[7]) ...                   // ids[7] is a duplicate
 *
 * Which threads may call a function, and what is valid after an error, is as echoless.h says. */
#ifndef ECHOLESS_HPP
#define ECHOLESS_HPP

#include <echoless.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace echoless {

/* A call that failed: what() is the text, code() an echoless_status. */
class error : public std::runtime_error {
public:
    explicit error(int code) : std::runtime_error(echoless_last_error()), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

inline void check(int status) {
    if (status != ECHOLESS_OK) throw error(status);
}

/* The owner of a handle. An empty one, such as one that was moved from, is NULL. */
template <class Handle, int (*Free)(Handle *)>
class owner {
public:
    owner() noexcept = default;
    explicit owner(Handle *handle) noexcept : handle_(handle) {}
    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    owner &operator=(owner &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() { Free(handle_); }
    Handle *get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

protected:
    /* Fills the handle: `make` takes the arguments and a place for it. */
    template <class Make, class... Arguments>
    void fill(Make make, Arguments... arguments) {
        check(make(arguments..., &handle_));
    }
    Handle *handle_ = nullptr;
};

/* The verdicts of a call. The memory is used again by later ones. After a call that failed they are
 * those of the call before. */
class verdicts {
public:
    bool operator[](std::size_t index) const { return echoless_is_duplicate(words_.data(), index); }
    std::size_t size() const noexcept { return keys_; }
    std::uint64_t duplicates() const noexcept { return duplicates_; }

    /* Runs a call with memory for the verdicts of `keys`. */
    template <class Handle, class Observe>
    void of(Observe observe, Handle *handle, const echoless_keys &keys) {
        next_.resize(keys.count / 64 + 1);
        std::uint64_t duplicates = 0;
        check(observe(handle, keys, next_.data(), &duplicates));
        take(keys.count, duplicates);
    }
    /* Waits for the oldest batch in flight; false if there is none. */
    bool drain(echoless_port *port, std::size_t most) {
        next_.resize(most / 64 + 1);
        std::size_t keys = 0;
        std::uint64_t duplicates = 0;
        check(echoless_port_drain(port, next_.data(), next_.size(), &keys, &duplicates));
        take(keys, duplicates);
        return keys > 0;
    }

private:
    void take(std::size_t keys, std::uint64_t duplicates) noexcept {
        words_.swap(next_);
        keys_ = keys;
        duplicates_ = duplicates;
    }

    std::vector<std::uint64_t> words_;
    /* Where a call writes, until it has succeeded. */
    std::vector<std::uint64_t> next_;
    std::size_t keys_ = 0;
    std::uint64_t duplicates_ = 0;
};

/* Texts as keys: echoless_slices(slices.data(), slices.size()) takes them. */
inline std::vector<echoless_slice> slices(const std::vector<std::string_view> &texts) {
    std::vector<echoless_slice> slices;
    slices.reserve(texts.size());
    for (auto text : texts)
        slices.push_back({reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
    return slices;
}

template <class Handle>
echoless_report report_of(int (*report)(Handle *, echoless_report *), Handle *handle) {
    echoless_report fields{};
    fields.size = sizeof fields;
    check(report(handle, &fields));
    return fields;
}

class packet_keys : public owner<echoless_packet_keys, echoless_packet_keys_free> {
public:
    explicit packet_keys(const echoless_packet_options *options = nullptr) {
        fill(echoless_packet_keys_new, options);
    }
};

class filter : public owner<echoless_filter, echoless_filter_free> {
public:
    explicit filter(const std::string &spec, const echoless_hashing *hashing = nullptr) {
        fill(echoless_filter_new, spec.c_str(), hashing);
    }
    /* The filter of a state; `position` gets the bytes that were saved with it. */
    static filter load(const std::string &path, std::vector<std::uint8_t> *position = nullptr,
                       const echoless_hashing *hashing = nullptr,
                       std::uint64_t memory_limit = UINT64_MAX) {
        std::vector<std::uint8_t> bytes(position ? std::size_t{1} << 16 : 0);
        for (;;) {
            std::size_t length = 0;
            filter loaded;
            int status = echoless_filter_load_file(path.c_str(), hashing, memory_limit,
                                                   position ? bytes.data() : nullptr,
                                                   bytes.size(), &length, &loaded.handle_);
            /* Again, with room for the bytes. */
            if (status != ECHOLESS_OK && position && length > bytes.size()) {
                bytes.resize(length);
                continue;
            }
            check(status);
            if (position) position->assign(bytes.data(), bytes.data() + length);
            return loaded;
        }
    }
    void save(const std::string &path, const void *position = nullptr, std::size_t length = 0) {
        auto bytes = static_cast<const std::uint8_t *>(position);
        check(echoless_filter_save_file(handle_, path.c_str(), bytes, length));
    }
    void observe(const echoless_keys &keys, verdicts &into) {
        into.of(echoless_filter_observe, handle_, keys);
    }
    void contains(const echoless_keys &keys, verdicts &into) const {
        into.of(echoless_filter_contains, handle_, keys);
    }
    void advance(std::uint64_t tick) { check(echoless_filter_advance(handle_, tick)); }
    void clear() { check(echoless_filter_clear(handle_)); }
    echoless_report report() const { return report_of(echoless_filter_report, handle_); }
    std::string spec() const {
        char text[1024];
        std::size_t length = 0;
        check(echoless_filter_spec(handle_, text, sizeof text, &length));
        return std::string(text, length);
    }

private:
    filter() = default;
};

class shared : public owner<echoless_shared, echoless_shared_free> {
public:
    explicit shared(const std::string &spec, const echoless_hashing *hashing = nullptr) {
        fill(echoless_shared_new, spec.c_str(), hashing);
    }
    void observe(const echoless_keys &keys, verdicts &into) const {
        into.of(echoless_shared_observe, handle_, keys);
    }
    void contains(const echoless_keys &keys, verdicts &into) const {
        into.of(echoless_shared_contains, handle_, keys);
    }
    void clear() { check(echoless_shared_clear(handle_)); }
    echoless_report report() const { return report_of(echoless_shared_report, handle_); }
};

/* The access of one thread to an ordered filter. */
class thread : public owner<echoless_thread, echoless_thread_free> {
public:
    explicit thread(echoless_ordered *ordered) { fill(echoless_thread_new, ordered); }
    void take() { check(echoless_thread_take(handle_)); }
    void leave() { check(echoless_thread_leave(handle_)); }
    void observe(const echoless_keys &keys, verdicts &into) {
        into.of(echoless_thread_observe, handle_, keys);
    }
};

class ordered : public owner<echoless_ordered, echoless_ordered_free> {
public:
    ordered(const std::string &spec, std::size_t partitions,
            const echoless_hashing *hashing = nullptr) {
        fill(echoless_ordered_new, spec.c_str(), hashing, partitions);
    }
    echoless::thread thread() const { return echoless::thread(handle_); }
    echoless_report report() const { return report_of(echoless_ordered_report, handle_); }
};

/* The way of one thread to the workers of an engine. */
class port : public owner<echoless_port, echoless_port_free> {
public:
    explicit port(echoless_engine *engine) { fill(echoless_port_new, engine); }
    void submit(const echoless_keys &keys) { check(echoless_port_submit(handle_, keys)); }
    /* `most` is the number of keys of the largest batch. */
    bool drain(verdicts &into, std::size_t most) { return into.drain(handle_, most); }
};

class engine : public owner<echoless_engine, echoless_engine_free> {
public:
    engine(const std::string &spec, std::size_t partitions,
           const echoless_hashing *hashing = nullptr) {
        fill(echoless_engine_new, spec.c_str(), hashing, partitions);
    }
    echoless::port port() const { return echoless::port(handle_); }
    echoless_report shutdown() { return report_of(echoless_engine_shutdown, handle_); }
};

} // namespace echoless

#endif /* ECHOLESS_HPP */
