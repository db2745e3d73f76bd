// What a program that uses the installed library looks like: build a model, run it, read a result.
#include <cstdio>

#include "reef/apps/robotics.h"
#include "reef/runtime/session.h"

int main() {
    auto model = reef::apps::looming_model({});
    if (!model) return std::fprintf(stderr, "%s\n", model.error().message().c_str()), 1;
    auto session = reef::runtime::Session::open(*model, {});
    if (!session) return std::fprintf(stderr, "%s\n", session.error().message().c_str()), 1;
    if (auto ran = session->run(); !ran) return 1;
    std::printf("%zu bytes\n", session->output(0).size());
    return session->output(0).size() == 9 ? 0 : 1;
}
