import { useEffect, useState } from 'preact/hooks';

/** The session of this tab. It ends with the tab, with the daemon, or after 12 hours. */
export type Session = { readonly token: string; readonly admin: boolean };

const storageKey = 'latchkey-session';
const listeners = new Set<() => void>();

export function currentSession(): Session | null {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? 'null') as Session | null;
  } catch {
    return null;
  }
}

export function saveSession(session: Session | null): void {
  if (session === null) sessionStorage.removeItem(storageKey);
  else sessionStorage.setItem(storageKey, JSON.stringify(session));
  for (const listener of listeners) listener();
}

export function useSession(): Session | null {
  const [session, setSession] = useState(currentSession);
  useEffect(() => {
    const update = (): void => setSession(currentSession());
    listeners.add(update);
    return () => {
      listeners.delete(update);
    };
  }, []);
  return session;
}
