/* The classes of echoless.hpp. The argument is a folder for files. */
#include <echoless.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <type_traits>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                   \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static const std::string LINES = "fingerprint:fpr=1e-8,memory=1MiB";

/* The code of the error that `run` throws, 0 without one. */
template <class Run>
int code_of(Run run) {
    try {
        run();
    } catch (const echoless::error &error) {
        CHECK(std::string(error.what()).size() > 10);
        return error.code();
    }
    return 0;
}

static void handles() {
    static_assert(!std::is_copy_constructible_v<echoless::filter>);
    static_assert(std::is_nothrow_move_constructible_v<echoless::filter>);
    static_assert(std::is_nothrow_move_assignable_v<echoless::port>);
    static_assert(!std::is_default_constructible_v<echoless::filter>);
    echoless::filter one(LINES), two(LINES);
    auto *handle = one.get();
    echoless::filter moved(std::move(one));
    CHECK(!one && moved.get() == handle);
    moved = std::move(two);
    two = echoless::filter(LINES);
    CHECK(moved && two && moved.get() != handle);
    CHECK(code_of([&] { one.clear(); }) == ECHOLESS_STATUS_INVALID_ARGUMENT);
    CHECK(code_of([] { echoless::filter("fingerprint:memory"); }) == ECHOLESS_STATUS_INVALID_SPEC);
    CHECK(code_of([] { echoless::filter::load("/nowhere/at/all"); }) == ECHOLESS_STATUS_IO);
    try {
        echoless::filter("fingerprint:fpr=0,memory=1MiB");
        CHECK(!"an error");
    } catch (const std::runtime_error &error) {
        CHECK(std::string(error.what()).rfind("invalid fpr=0", 0) == 0);
    }
}

static void filters(const std::string &folder) {
    echoless::filter filter(LINES);
    echoless::verdicts verdicts;
    std::vector<std::string_view> texts = {"to", "be", "or", "not", "to", "be", ""};
    auto slices = echoless::slices(texts);
    auto keys = echoless_slices(slices.data(), slices.size());
    filter.observe(keys, verdicts);
    CHECK(verdicts.size() == 7 && verdicts.duplicates() == 2);
    for (std::size_t i = 0; i < 7; i++) CHECK(verdicts[i] == (i == 4 || i == 5));
    filter.observe(echoless_numbers(nullptr, 0), verdicts);
    CHECK(verdicts.size() == 0 && verdicts.duplicates() == 0);
    auto path = folder + "/raii.state";
    filter.save(path, "at 7", 4);
    std::vector<std::uint8_t> position;
    auto loaded = echoless::filter::load(path, &position);
    CHECK(std::string(position.begin(), position.end()) == "at 7");
    CHECK(loaded.spec() == filter.spec());
    loaded.contains(keys, verdicts);
    CHECK(verdicts.duplicates() == 7);
    CHECK(echoless::filter::load(path));
    std::remove(path.c_str());
    auto report = filter.report();
    CHECK(report.observed == 7 && report.fresh == 5);
    filter.clear();
    filter.contains(keys, verdicts);
    CHECK(verdicts.duplicates() == 0);

    echoless::filter window("clocked:window=60,refresh=false,form=line,memory=1MiB");
    std::uint64_t id = 7, tick = 100;
    window.observe(echoless_at(echoless_numbers(&id, 1), &tick), verdicts);
    window.advance(1000);
    window.observe(echoless_numbers(&id, 1), verdicts);
    CHECK(!verdicts[0]);

    echoless::packet_keys reader;
    std::uint8_t frame[60] = {};
    echoless_packet packets[] = {{frame, 60, 60}, {frame, 60, 60}};
    filter.observe(echoless_packets(packets, 2, reader.get()), verdicts);
    CHECK(!verdicts[0] && verdicts[1]);
}

/* After a call that failed, verdicts are those of the call before, to the last word. */
static void failures(const std::string &folder) {
    std::vector<std::uint64_t> ids(1000);
    for (std::size_t i = 0; i < ids.size(); i++) ids[i] = i / 2;
    auto keys = echoless_numbers(ids.data(), ids.size());
    auto none = echoless_numbers(nullptr, 10), unknown = echoless_numbers(ids.data(), 100);
    unknown.form = 99;
    echoless::filter filter(LINES);
    echoless::shared shared("row2x32:memory=1MiB");
    echoless::ordered ordered(LINES, 2);
    auto thread = ordered.thread();
    echoless::engine engine(LINES, 2);
    auto port = engine.port();
    auto check = [&](const char *what, echoless::verdicts &verdicts, auto call) {
        bool has_thrown = false;
        try {
            call(verdicts);
        } catch (const std::exception &) {
            has_thrown = true;
        }
        CHECK(has_thrown && what);
        CHECK(verdicts.size() == 1000 && verdicts.duplicates() == 500);
        for (std::size_t i = 0; i < verdicts.size(); i++) CHECK(verdicts[i] == (i % 2 == 1));
    };
    for (auto &wrong : {none, unknown}) {
        echoless::verdicts verdicts;
        filter.clear();
        filter.observe(keys, verdicts);
        check("observe", verdicts, [&](auto &into) { filter.observe(wrong, into); });
        check("contains", verdicts, [&](auto &into) { filter.contains(wrong, into); });
        check("shared", verdicts, [&](auto &into) { shared.observe(wrong, into); });
        check("shared contains", verdicts, [&](auto &into) { shared.contains(wrong, into); });
        check("thread", verdicts, [&](auto &into) { thread.observe(wrong, into); });
        port.submit(keys);
        check("drain", verdicts, [&](auto &into) { port.drain(into, 64); });
        echoless::verdicts drained;
        CHECK(port.drain(drained, 1000) && drained.size() == 1000);
    }

    /* Bytes of any length come back, and a failed load leaves those of before. */
    auto path = folder + "/raii.state";
    std::vector<std::uint8_t> position(100000, 7), loaded;
    filter.save(path, position.data(), position.size());
    CHECK(echoless::filter::load(path, &loaded) && loaded == position);
    CHECK(code_of([&] { echoless::filter::load("/nowhere/at/all", &loaded); }) != 0);
    CHECK(loaded == position);
    std::remove(path.c_str());
}

static void threads() {
    echoless::shared shared("row2x32:memory=4MiB");
    echoless::ordered ordered(LINES, 2);
    echoless::engine engine(LINES, 2);
    std::uint64_t fresh[3][2] = {};
    std::vector<std::thread> running;
    for (int i = 0; i < 2; i++) {
        running.emplace_back([&, i, thread = ordered.thread(), port = engine.port()]() mutable {
            echoless::verdicts verdicts;
            std::uint64_t ids[100];
            for (std::uint64_t from = 0; from < 10000; from += 100) {
                for (std::uint64_t key = 0; key < 100; key++) ids[key] = from + key;
                auto keys = echoless_numbers(ids, 100);
                shared.observe(keys, verdicts);
                fresh[0][i] += 100 - verdicts.duplicates();
                thread.take();
                thread.observe(keys, verdicts);
                fresh[1][i] += 100 - verdicts.duplicates();
                port.submit(keys);
                CHECK(port.drain(verdicts, 100) && verdicts.size() == 100);
                fresh[2][i] += 100 - verdicts.duplicates();
            }
            thread.take();
            thread.leave();
            CHECK(!port.drain(verdicts, 100));
        });
    }
    for (auto &thread : running) thread.join();
    /* A shared filter forgets a few. */
    auto shared_fresh = fresh[0][0] + fresh[0][1];
    CHECK(shared_fresh >= 9900 && shared_fresh <= 10200);
    for (int kind = 1; kind < 3; kind++) CHECK(fresh[kind][0] + fresh[kind][1] == 10000);
    CHECK(shared.report().fresh == shared_fresh && ordered.report().fresh == 10000);
    CHECK(engine.shutdown().fresh == 10000);
    CHECK(code_of([&] { engine.port(); }) == ECHOLESS_STATUS_DISCONNECTED);
    echoless::verdicts verdicts;
    std::uint64_t id = 9999;
    shared.contains(echoless_numbers(&id, 1), verdicts);
    CHECK(verdicts[0]);
    shared.clear();
    shared.contains(echoless_numbers(&id, 1), verdicts);
    CHECK(!verdicts[0]);
}

/* More keys than the filter has slots: alone, it would be wrong about most of them. */
static void exact(const std::string &folder) {
    std::vector<std::uint64_t> ids(500), position{77};
    for (std::size_t i = 0; i < ids.size(); i++) ids[i] = i;
    auto keys = echoless_numbers(ids.data(), ids.size());
    echoless::verdicts verdicts;
    {
        echoless::exact exact("fingerprint:memory=64");
        exact.observe(keys, verdicts);
        CHECK(verdicts.duplicates() == 0);
        exact.save(folder, position.data(), 8);
    }
    std::vector<std::uint8_t> saved;
    auto exact = echoless::exact::load(folder, &saved);
    CHECK(saved.size() == 8 && saved[0] == 77);
    exact.observe(keys, verdicts);
    CHECK(verdicts.duplicates() == 500);
    CHECK(std::system(("rm -r '" + folder + "'").c_str()) == 0);
}

int main(int count, char **arguments) {
    handles();
    filters(count > 1 ? arguments[1] : ".");
    failures(count > 1 ? arguments[1] : ".");
    exact(std::string(count > 1 ? arguments[1] : ".") + "/exact");
    threads();
    std::puts("ok");
}
