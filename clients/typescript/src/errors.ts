/** The service refused a call. `code` is stable and for programs, `detail` is for people (RFC 9457). */
export class ApiError extends Error {
  readonly code: string
  readonly detail: string
  /** Each flaw of a request. */
  readonly errors: ReadonlyArray<{ pointer: string, detail: string }>

  constructor (
    readonly status: number,
    /** All members of the problem; empty where a proxy answered a page. */
    readonly problem: Readonly<Record<string, unknown>>,
    /** In seconds, where the service named a time. */
    readonly retryAfter: number | undefined
  ) {
    const code = typeof problem.code === 'string' ? problem.code : 'unknown'
    const detail = typeof problem.detail === 'string' ? problem.detail : ''
    const errors = Array.isArray(problem.errors) ? problem.errors as Array<{ pointer: string, detail: string }> : []
    super(`${status} ${code}: ${[detail, ...errors.map(flaw => `${flaw.pointer} ${flaw.detail}`)].join('; ')}`)
    this.name = 'ApiError'
    this.code = code
    this.detail = detail
    this.errors = errors
  }

  static async of (response: Response): Promise<ApiError> {
    const problem: unknown = await response.clone().json().catch(() => ({}))
    const members = typeof problem === 'object' && problem !== null ? problem as Record<string, unknown> : {}
    return new ApiError(response.status, members, retryAfter(response))
  }
}

/** `Retry-After` in seconds: a number, or a date. */
export function retryAfter (response: Response): number | undefined {
  const printed = response.headers.get('retry-after')
  if (printed === null) return undefined
  if (/^\d+$/.test(printed.trim())) return Number(printed)
  const date = Date.parse(printed)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000)
}
