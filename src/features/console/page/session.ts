import { useEffect, useState } from 'preact/hooks';

/** The session of this browser. It ends with its last tab, with the daemon, or after 12 hours. */
export type Session = { readonly token: string; readonly admin: boolean; readonly expires_at: string };

/** `ended`: the session that is over, unless a person signed out. */
type Signed = { readonly session: Session | null; readonly ended: Session | null };

const storageKey = 'latchkey-session';
const listeners = new Set<() => void>();
let signed: Signed = { session: stored(), ended: null };

function stored(): Session | null {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? 'null') as Session | null;
  } catch {
    return null;
  }
}

function change(next: Signed): void {
  signed = next;
  if (next.session === null) sessionStorage.removeItem(storageKey);
  else sessionStorage.setItem(storageKey, JSON.stringify(next.session));
  for (const listener of listeners) listener();
}

/** What the tabs of a browser tell each other. `asked`: a tab has no session. */
type Message =
  | { readonly asked: true }
  | { readonly begun: Session }
  | { readonly over: string; readonly isSignedOut: boolean };

const tabs = new BroadcastChannel(storageKey);

function tell(message: Message): void {
  tabs.postMessage(message);
}

tabs.addEventListener('message', ({ data }: MessageEvent<Message>) => {
  const { session } = signed;
  if ('begun' in data && session === null) change({ session: data.begun, ended: null });
  else if ('asked' in data && session !== null) tell({ begun: session });
  else if ('over' in data && session?.token === data.over) end(data.isSignedOut);
});

function end(isSignedOut: boolean): void {
  change({ session: null, ended: isSignedOut ? null : signed.session });
}

export function currentSession(): Session | null {
  return signed.session;
}

export function beginSession(session: Session): void {
  change({ session, ended: null });
  tell({ begun: session });
}

/** `isSignedOut`: a person wanted it. */
export function endSession({ token }: Session, isSignedOut = false): void {
  end(isSignedOut);
  tell({ over: token, isSignedOut });
}

/** Another tab may have a session. */
export function askTabs(): void {
  tell({ asked: true });
}

export function useSigned(): Signed {
  const [shown, setShown] = useState(signed);
  useEffect(() => {
    const update = (): void => setShown(signed);
    listeners.add(update);
    update();
    return () => {
      listeners.delete(update);
    };
  }, []);
  return shown;
}

export function useSession(): Session | null {
  return useSigned().session;
}
