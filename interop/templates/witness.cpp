// Renders chat templates with llama.cpp's common/chat.cpp. Reads a line of JSON for each prompt: `template`, `messages`, and
// optionally `tools`, `bos`, `eos`, `add_bos`, `add_eos`, `generation` and `variables`. Writes a line: `prompt`, or `error`.
// Each prompt is rendered in a process of its own, since a template can crash llama.cpp.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "chat.h"
#include "ggml.h"
#include "json.h"
#include "llama.h"

using json = common_json;

// common_chat_templates as chat.cpp defines it: the flags come from the vocabulary, and there is none here.
struct templates {
    bool add_bos, add_eos, is_explicit;
    std::unique_ptr<common_chat_template> chat, tool_use;
};

static std::string render(const std::string & line) {
    json out = json::object();
    try {
        json request = json::parse(line);
        auto parsed = common_chat_templates_init(
            nullptr, request.at("template").get<std::string>(), request.value("bos", ""), request.value("eos", ""));
        auto * flags = reinterpret_cast<templates *>(parsed.get());
        flags->add_bos = request.contains("add_bos") && request.at("add_bos").get<bool>();
        flags->add_eos = request.contains("add_eos") && request.at("add_eos").get<bool>();
        common_chat_templates_inputs inputs;
        inputs.messages = common_chat_msgs_parse_oaicompat(request.at("messages"));
        if (request.contains("tools")) {
            inputs.tools = common_chat_tools_parse_oaicompat(request.at("tools"));
        }
        inputs.add_generation_prompt = !request.contains("generation") || request.at("generation").get<bool>();
        if (request.contains("variables")) {
            for (const auto & [name, value] : request.at("variables").items()) {
                if (name == "enable_thinking" && value.is_boolean()) {
                    inputs.enable_thinking = value.get<bool>();
                }
                inputs.chat_template_kwargs[name] = value.dump();
            }
        }
        out["prompt"] = common_chat_templates_apply(parsed.get(), inputs).prompt;
    } catch (const std::exception & error) {
        out["error"] = std::string(error.what());
    }
    try {
        return out.dump();
    } catch (const std::exception &) {
        return "{\"error\":\"the prompt is not UTF-8\"}";
    }
}

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        int ends[2];
        if (pipe(ends) != 0) {
            return 1;
        }
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            close(ends[0]);
            if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) {
                _exit(1);
            }
            const std::string text = render(line);
            for (size_t done = 0; done < text.size();) {
                const ssize_t written = write(ends[1], text.data() + done, text.size() - done);
                if (written <= 0) {
                    _exit(1);
                }
                done += written;
            }
            _exit(0);
        }
        close(ends[1]);
        std::string text;
        char buffer[65536];
        for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
            text.append(buffer, count);
        }
        close(ends[0]);
        waitpid(child, nullptr, 0);
        std::cout << (text.empty() ? "{\"error\":\"crashed\"}" : text) << std::endl;
    }
}

// What chat.cpp needs of other files, as far as a template without a model reaches it.
std::string common_token_to_piece(const struct llama_vocab *, llama_token, bool) { abort(); }
std::vector<llama_token> common_tokenize(const struct llama_vocab *, const std::string &, bool, bool) { return {}; }
bool tty_can_use_colors() { return false; }
extern "C" {
void ggml_abort(const char *, int, const char *, ...) { abort(); }
int32_t llama_chat_apply_template(const char *, const struct llama_chat_message *, size_t, bool, char *, int32_t) { return -1; }
const char * llama_model_chat_template(const struct llama_model *, const char *) { return nullptr; }
const struct llama_vocab * llama_model_get_vocab(const struct llama_model *) { return nullptr; }
llama_token llama_vocab_bos(const struct llama_vocab *) { return -1; }
llama_token llama_vocab_eos(const struct llama_vocab *) { return -1; }
bool llama_vocab_get_add_bos(const struct llama_vocab *) { return false; }
bool llama_vocab_get_add_eos(const struct llama_vocab *) { return false; }
}

std::string string_join(const std::vector<std::string> & values, const std::string & separator) {
    std::string out;
    for (size_t i = 0; i < values.size(); ++i) {
        out += (i > 0 ? separator : "") + values[i];
    }
    return out;
}

std::string string_repeat(const std::string & text, size_t count) {
    std::string out;
    while (count-- > 0) {
        out += text;
    }
    return out;
}

std::vector<std::string> string_split(const std::string & text, const std::string & separator) {
    std::vector<std::string> parts;
    size_t start = 0;
    for (size_t end; (end = text.find(separator, start)) != std::string::npos; start = end + separator.size()) {
        parts.push_back(text.substr(start, end - start));
    }
    parts.push_back(text.substr(start));
    return parts;
}

void string_replace_all(std::string & text, const std::string & old, const std::string & replacement) {
    for (size_t at = 0; !old.empty() && (at = text.find(old, at)) != std::string::npos; at += replacement.size()) {
        text.replace(at, old.size(), replacement);
    }
}
