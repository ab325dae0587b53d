#include "tools/common/random_model.h"

#include <gtest/gtest.h>

#include "app/model/loaded_model.h"
#include "core/model/arch/config.h"
#include "core/model/weight_checks.h"
#include "core/model/weights.h"

namespace quire::tools {
namespace {

TEST(RandomModel, HasTheShapeItIsNamedAfter) {
  const RandomModel random("135m");
  const auto files = random.files();
  const model::ModelSpec config = model::load_config(*files);
  const model::Checkpoint checkpoint = model::Checkpoint::open(*files);
  EXPECT_NO_THROW(model::check_weights(config, checkpoint));
  EXPECT_EQ(checkpoint.num_parameters(), 134'515'008u);  // SmolLM2-135M's own count
  EXPECT_EQ(app::main_dtype(checkpoint), backend::Format::kBF16);
}

}  // namespace
}  // namespace quire::tools
