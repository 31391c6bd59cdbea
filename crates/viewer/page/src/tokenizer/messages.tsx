// Editor of chat messages.
import type { Message } from "../api/token-types";

const ROLES = ["system", "user", "assistant", "tool"];

export function Messages({ messages, onChange }: { messages: Message[]; onChange: (to: Message[]) => void }) {
  const set = (at: number, change: Partial<Message>) =>
    onChange(messages.map((message, i) => (i === at ? { ...message, ...change } : message)));
  const next = messages[messages.length - 1]?.role === "user" ? "assistant" : "user";
  return (
    <>
      <ol class="messages">
        {messages.map((message, i) => (
          <li key={i}>
            <div class="message-head">
              <select
                aria-label={`Role of message ${i + 1}`}
                value={message.role}
                onChange={(event) => set(i, { role: event.currentTarget.value })}
              >
                {ROLES.map((role) => (
                  <option key={role}>{role}</option>
                ))}
              </select>
              <button
                type="button"
                class="quiet"
                aria-label={`Remove message ${i + 1}`}
                onClick={() => onChange(messages.filter((_, other) => other !== i))}
              >
                ×
              </button>
            </div>
            <textarea
              aria-label={`Text of message ${i + 1}`}
              rows={2}
              value={message.content}
              onInput={(event) => set(i, { content: event.currentTarget.value })}
            />
          </li>
        ))}
      </ol>
      <button type="button" onClick={() => onChange([...messages, { role: next, content: "" }])}>
        Add message
      </button>
    </>
  );
}
