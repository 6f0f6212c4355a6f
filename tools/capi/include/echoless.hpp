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

/* The owner of a handle. An empty one, such as one that was moved from, is NULL. A call that the
 * kind of the handle does not have throws. */
class handle {
public:
    handle(handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    handle &operator=(handle &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle() { echoless_free(handle_); }
    echoless_handle *get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /* Generated: the calls with numbers. */
    void advance(std::uint64_t tick) { check(echoless_advance(handle_, tick)); }
    void clear() { check(echoless_clear(handle_)); }
    std::uint64_t memory_bytes() const {
        std::uint64_t result = 0;
        check(echoless_memory_bytes(handle_, &result));
        return result;
    }
    std::uint64_t lines() const {
        std::uint64_t result = 0;
        check(echoless_lines(handle_, &result));
        return result;
    }
    void take() { check(echoless_take(handle_)); }
    void leave() { check(echoless_leave(handle_)); }
    void wait(std::uint64_t milliseconds) { check(echoless_wait(handle_, milliseconds)); }
    /* End. */

    echoless_report report() const { return report_by(echoless_read_report); }
    std::string spec() const {
        char text[1024];
        std::size_t length = 0;
        check(echoless_spec(handle_, echoless_into(text, sizeof text, &length)));
        return std::string(text, length);
    }
    void save(const std::string &path, const void *position = nullptr, std::size_t length = 0) {
        check(echoless_save(handle_, echoless_to_file(path.c_str()),
                            echoless_bytes(position, length)));
    }

protected:
    handle() noexcept = default;
    echoless_report report_by(int (*call)(echoless_handle *, echoless_report *)) const {
        echoless_report report{};
        report.size = sizeof report;
        check(call(handle_, &report));
        return report;
    }
    handle(echoless_kind kind, const std::string &spec, const echoless_hashing *hashing,
           std::size_t partitions = 1) {
        check(echoless_new(kind, spec.c_str(), hashing, partitions, &handle_));
    }
    /* The access of one more thread. */
    explicit handle(echoless_handle *owner) { check(echoless_open(owner, &handle_)); }
    echoless_handle *handle_ = nullptr;
};

/* The verdicts of a call. The memory is used again by later ones. After a call that failed they are
 * those of the call before. */
class verdicts {
public:
    bool operator[](std::size_t index) const { return echoless_is_duplicate(words_.data(), index); }
    std::size_t size() const noexcept { return keys_; }
    std::uint64_t duplicates() const noexcept { return duplicates_; }

    /* Runs a call with memory for the verdicts of `keys`. */
    void of(int (*observe)(echoless_handle *, echoless_keys, std::uint64_t *, std::uint64_t *),
            echoless_handle *handle, const echoless_keys &keys) {
        next_.resize(keys.count / 64 + 1);
        std::uint64_t duplicates = 0;
        check(observe(handle, keys, next_.data(), &duplicates));
        take(keys.count, duplicates);
    }
    /* Waits for the oldest batch in flight; false if there is none. */
    bool drain(echoless_handle *port, std::size_t most) {
        next_.resize(most / 64 + 1);
        std::size_t keys = 0;
        std::uint64_t duplicates = 0;
        auto words = echoless_into(next_.data(), next_.size() * sizeof next_[0], nullptr);
        check(echoless_drain(port, words, &keys, &duplicates));
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

class packet_keys : public handle {
public:
    explicit packet_keys(const echoless_packet_options *options = nullptr) {
        check(echoless_packet_keys(options, &handle_));
    }
};

/* What filters of all kinds have that judge by themselves. */
template <echoless_kind Kind>
class judge : public handle {
public:
    /* The filter of a state; `position` gets the bytes that were saved with it. */
    static judge load(const std::string &path, std::vector<std::uint8_t> *position = nullptr,
                      const echoless_hashing *hashing = nullptr,
                      std::uint64_t memory_limit = UINT64_MAX) {
        std::vector<std::uint8_t> bytes(position ? std::size_t{1} << 16 : 0);
        for (;;) {
            std::size_t length = 0;
            judge loaded;
            auto room = echoless_into(position ? bytes.data() : nullptr, bytes.size(), &length);
            int status = echoless_load(Kind, echoless_from_file(path.c_str()), hashing, 1,
                                       memory_limit, room, &loaded.handle_);
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
    explicit judge(const std::string &spec, const echoless_hashing *hashing = nullptr)
        : handle(Kind, spec, hashing) {}
    void observe(const echoless_keys &keys, verdicts &into) {
        into.of(echoless_observe, handle_, keys);
    }
    void contains(const echoless_keys &keys, verdicts &into) const {
        into.of(echoless_contains, handle_, keys);
    }

private:
    judge() = default;
};

using filter = judge<ECHOLESS_KIND_FILTER>;
using shared = judge<ECHOLESS_KIND_SHARED>;
/* Its path is a folder, which it has for itself. */
using exact = judge<ECHOLESS_KIND_EXACT>;

/* The access of one thread to an ordered filter. */
class thread : public handle {
public:
    explicit thread(echoless_handle *ordered) : handle(ordered) {}
    void observe(const echoless_keys &keys, verdicts &into) {
        into.of(echoless_observe, handle_, keys);
    }
};

class ordered : public handle {
public:
    ordered(const std::string &spec, std::size_t partitions,
            const echoless_hashing *hashing = nullptr)
        : handle(ECHOLESS_KIND_ORDERED, spec, hashing, partitions) {}
    echoless::thread thread() const { return echoless::thread(handle_); }
};

/* The way of one thread to the workers of an engine. */
class port : public handle {
public:
    explicit port(echoless_handle *engine) : handle(engine) {}
    void submit(const echoless_keys &keys) { check(echoless_submit(handle_, keys)); }
    /* `most` is the number of keys of the largest batch. */
    bool drain(verdicts &into, std::size_t most) { return into.drain(handle_, most); }
};

class engine : public handle {
public:
    engine(const std::string &spec, std::size_t partitions,
           const echoless_hashing *hashing = nullptr)
        : handle(ECHOLESS_KIND_ENGINE, spec, hashing, partitions) {}
    echoless::port port() const { return echoless::port(handle_); }
    echoless_report shutdown() { return report_by(echoless_shutdown); }
};

} // namespace echoless

#endif /* ECHOLESS_HPP */
