#include "edgetpu/usb/shared_request.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

using namespace edgetpu::usb;

void add(std::vector<std::byte>& all, const Packet& packet) {
    all.push_back(static_cast<std::byte>(packet.bytes().size()));
    all.insert(all.end(), packet.bytes().begin(), packet.bytes().end());
}

Packet ask(SharedRequest what) {
    return Packet().put(what);
}

}  // namespace

Result<Seeds> edgetpu_shared_seeds() {
    std::vector<std::byte> session;
    for (const auto what : {SharedRequest::list, SharedRequest::descriptors,
                            SharedRequest::standstill, SharedRequest::refusal})
        add(session, ask(what).put_text("2-1"));
    Packet open = ask(SharedRequest::open);
    put_device(
        open,
        {.vendor = 0x18d1, .product = 0x9302, .port = "2-1", .address = 1, .speed = Speed::super});
    add(session, open);
    add(session, ask(SharedRequest::claim).put(0U));
    add(session,
        ask(SharedRequest::control)
            .put(
                Setup{.request_type = 0xc0, .request = 1, .value = 0xa318, .index = 1, .length = 4})
            .put(std::int64_t{100})
            .put_bytes({}));
    const std::byte header[8] = {};
    add(session, ask(SharedRequest::submit_out)
                     .put(std::uint8_t{1})
                     .put(EndpointType::bulk)
                     .put(std::uint64_t{8})
                     .put_bytes(header));
    add(session, ask(SharedRequest::submit_in)
                     .put(std::uint8_t{0x81})
                     .put(EndpointType::bulk)
                     .put(std::uint64_t{64})
                     .put_bytes({}));
    for (const auto what : {SharedRequest::wait, SharedRequest::cancel_all, SharedRequest::wait,
                            SharedRequest::reset, SharedRequest::close})
        add(session, ask(what));
    Seeds seeds;
    seeds.emplace_back("session", std::move(session));
    return seeds;
}

}  // namespace reef::fuzz
