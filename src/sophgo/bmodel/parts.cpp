#include "sophgo/bmodel/parts.h"

#include <fmt/format.h>

#include "sophgo/bmodel/reports.h"

namespace reef::sophgo {
namespace {

template <class Part>
class BmodelPart : public Part {
  public:
    [[nodiscard]] std::string_view family() const override { return "sophgo"; }
    [[nodiscard]] std::string_view kind() const override { return "bmodel"; }
    [[nodiscard]] std::string_view ending() const override { return "bmodel"; }
    [[nodiscard]] bool recognises(Bytes file) const override { return is_bmodel(file); }
};

class Inspector final : public BmodelPart<chip::FileInspector> {
  public:
    [[nodiscard]] Result<chip::FileReport> inspect(const SharedBytes& file,
                                                   chip::Detail detail) const override {
        return report_of(REEF_TRY(read_bmodel(file)), detail);
    }
};

class Checker final : public BmodelPart<chip::FileChecker> {
  public:
    [[nodiscard]] Result<chip::CheckReport> check(const SharedBytes& file) const override {
        return check_bmodel(REEF_TRY(read_bmodel(file)));
    }
};

class Comparer final : public BmodelPart<chip::FileComparer> {
  public:
    [[nodiscard]] Result<chip::FileDifferences> differences(const SharedBytes& a,
                                                            const SharedBytes& b) const override {
        return bmodel_differences(REEF_TRY(in_place(read_bmodel(a), "A")),
                                  REEF_TRY(in_place(read_bmodel(b), "B")));
    }
};

class Extractor final : public BmodelPart<chip::FileExtractor> {
  public:
    [[nodiscard]] std::vector<std::string_view> example_parts() const override {
        return {"kernel_module", "net0/stage0/coeff"};
    }
    [[nodiscard]] Result<std::vector<chip::FilePart>> parts_of(
        const SharedBytes& file) const override {
        const Bmodel bmodel = REEF_TRY(read_bmodel(file));
        std::vector<chip::FilePart> parts;
        for (Blob& blob : blobs_of(bmodel)) {
            if (!bytes_of(bmodel, blob))
                return fail(Cause::bad_input,
                            fmt::format("{} bytes at {} leave the section of {}", blob.size,
                                        blob.start, bmodel.binary.size()),
                            blob.what, "the file is cut off");
            parts.push_back({std::move(blob.name), std::move(blob.what),
                             bmodel.binary.part(static_cast<std::size_t>(blob.start),
                                                static_cast<std::size_t>(blob.size))});
        }
        return parts;
    }
};

}  // namespace

std::unique_ptr<chip::FileInspector> bmodel_inspector() {
    return std::make_unique<Inspector>();
}
std::unique_ptr<chip::FileChecker> bmodel_checker() {
    return std::make_unique<Checker>();
}
std::unique_ptr<chip::FileComparer> bmodel_comparer() {
    return std::make_unique<Comparer>();
}
std::unique_ptr<chip::FileExtractor> bmodel_extractor() {
    return std::make_unique<Extractor>();
}

}  // namespace reef::sophgo
