// A small parser of the Prometheus text format, strict enough for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace quire {

class Exposition {
 public:
  explicit Exposition(const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
      if (line.empty() || line[0] == '#') continue;
      const size_t space = line.rfind(' ');
      if (space == std::string::npos) {
        ADD_FAILURE() << "no value: " << line;
        continue;
      }
      const double value = std::stod(line.substr(space + 1));
      EXPECT_FALSE(std::isnan(value)) << line;
      EXPECT_TRUE(samples_.emplace(line.substr(0, space), value).second) << "twice: " << line;
    }
  }
  // Over all series of the name.
  double Sum(const std::string& name) const {
    double sum = 0;
    bool found = false;
    for (const auto& [series, value] : samples_) {
      if (series != name && !series.starts_with(name + "{")) continue;
      sum += value;
      found = true;
    }
    EXPECT_TRUE(found) << name;
    return sum;
  }
  // The one series with this label; -1 if there is none.
  double Value(const std::string& name, const std::string& label) const {
    for (const auto& [series, value] : samples_) {
      if (series.starts_with(name + "{") && series.find(label) != std::string::npos) return value;
    }
    return -1;
  }
  std::set<std::string> Series() const {
    std::set<std::string> names;
    for (const auto& [series, value] : samples_) names.insert(series);
    return names;
  }

 private:
  std::map<std::string, double> samples_;
};

}  // namespace quire
