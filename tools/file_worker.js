// Search without a server. Browsers start no worker from a file on disk, so on file:// a hidden frame does its work:
// it loads the same script, and hands messages in and out.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super()
      const frame = document.createElement("iframe")
      const url = new URL(script, location.href).href
      this.frame = frame
      this.waiting = []
      frame.hidden = true
      frame.srcdoc = "<!doctype html><title>search</title>"
      frame.addEventListener("load", () => this.load(url), { once: true })
      document.documentElement.append(frame)
    }

    load(url) {
      const inner = this.frame.contentWindow
      if (!inner) return
      inner.postMessage = message => {
        const data = structuredClone(message)
        setTimeout(() => this.tell(new MessageEvent("message", { data })))
      }
      const element = inner.document.createElement("script")
      element.src = url
      element.onload = () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      }
      element.onerror = () => this.tell(new Event("error"))
      inner.document.head.append(element)
    }

    tell(event) {
      this.dispatchEvent(event)
      const own = this[`on${event.type}`]
      if (own) own.call(this, event)
    }

    // A worker gets a copy of what it is told; so does the frame.
    postMessage(message) {
      const data = structuredClone(message)
      if (this.waiting) this.waiting.push(data)
      else {
        const inner = this.frame.contentWindow
        setTimeout(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })))
      }
    }

    terminate() {
      this.frame.remove()
    }
  }
}
