// Checks a license key when it starts, and counts a use: LicenseCheck LICENSE-KEY
using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Runtime.Serialization.Json;
using System.Threading.Tasks;
using System.Xml;

public static class LicenseCheck
{
    static readonly TimeSpan Deadline = TimeSpan.FromSeconds(10);
    static readonly TimeSpan Grace = TimeSpan.FromDays(14);
    static readonly string LastKnown = Getenv("LATCHKEY_LAST_KNOWN", "last-known");
    /// <summary>Until when a valid verdict counts without the agent.</summary>
    static DateTime until = DateTime.UtcNow + Grace;
    /// <summary>What the lease unlocks.</summary>
    static string[] entitlements = { };
    static readonly Lazy<HttpClient> Http = new Lazy<HttpClient>(NewClient);

    public static int Main(string[] args)
    {
        if (args.Length != 1)
        {
            Console.Error.WriteLine("usage: LicenseCheck LICENSE-KEY");
            return 2;
        }
        return Run(args[0]).GetAwaiter().GetResult();
    }

    static async Task<int> Run(string key)
    {
        string verdict = Lease.Roots.Length > 0 ? await Leased(key) : Remembered(await Verify(key));
        Console.WriteLine(verdict);
        if (entitlements.Length > 0) Console.WriteLine("entitlements: " + string.Join(" ", entitlements));
        if (verdict == "valid") Console.WriteLine("uses: " + await CountUse(key));
        return verdict.StartsWith("valid") ? 0 : verdict.StartsWith("refused") ? 1 : 2;
    }

    static HttpClient NewClient()
    {
        // A redirect or a proxy of the environment would send the secret to another server.
        var client = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false, UseProxy = false })
        {
            BaseAddress = new Uri(Getenv("LATCHKEY_URL", "http://127.0.0.1:8787")),
            Timeout = TimeSpan.FromSeconds(5),
        };
        client.DefaultRequestHeaders.Add("product-secret-key", Environment.GetEnvironmentVariable("LATCHKEY_SECRET"));
        client.DefaultRequestHeaders.Add("Accept", "application/problem+json, application/json");
        return client;
    }

    static async Task<string> Verify(string key)
    {
        try
        {
            var answer = await Http.Value.GetAsync("/api/v2/license/verify?license_key=" + Uri.EscapeDataString(key));
            var body = await Read(answer);
            string enabled = (int)answer.StatusCode == 200 ? Member(body, "data/enabled[@type='boolean']") : "";
            string end = Member(body, "data/grace_until | /root/data/expires_at[@type='string' and not(../grace_until)]");
            if (end != "" && DateTimeOffset.Parse(end).UtcDateTime < until) until = DateTimeOffset.Parse(end).UtcDateTime;
            if (enabled == "true") return "valid";
            if (enabled == "false") return "refused: disabled";
            bool isUnknown = (int)answer.StatusCode == 404 && Member(body, "code") == "license_not_found";
            return isUnknown ? "refused: not found" : "undetermined";
        }
        catch (Exception error) when (IsNoAnswer(error))
        {
            return "undetermined";
        }
    }

    /// <summary>What the vendor has signed for this device: another program on the port cannot say it.</summary>
    static async Task<string> Leased(string key)
    {
        string nonce = Guid.NewGuid().ToString();
        try
        {
            string query = "license_key=" + Uri.EscapeDataString(key) + "&product_key=" + Lease.Product + "&nonce=" + nonce;
            var answer = await Http.Value.GetAsync("/agent/v1/lease?" + query);
            var body = await Read(answer);
            if ((int)answer.StatusCode == 404 && Member(body, "code") == "license_not_found") return "refused: not found";
            if ((int)answer.StatusCode == 409 && Member(body, "code") == "no_seat_left") return "refused: no seat left";
            if ((int)answer.StatusCode == 409 && Member(body, "code") == "license_expired") return "refused: expired";
            long version;
            string verdict = Lease.Check(body, key, nonce, SeenVersion(), out version, out entitlements);
            Remember(version.ToString());
            return verdict;
        }
        catch (Exception error) when (IsNoAnswer(error) || error is Lease.NotProven)
        {
            Console.Error.WriteLine("not proven: " + error.Message);
            return "undetermined";
        }
    }

    /// <summary>The version of the keys that was seen last. Keys that the vendor has retired have a lower one.</summary>
    static long SeenVersion()
    {
        long version = 0;
        try
        {
            if (File.Exists(LastKnown)) long.TryParse(File.ReadAllText(LastKnown), out version);
        }
        catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
        {
            Console.Error.WriteLine(error.Message);
        }
        return version;
    }

    static void Remember(string text)
    {
        try
        {
            File.WriteAllText(LastKnown, text);
        }
        catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
        {
            Console.Error.WriteLine(error.Message);
        }
    }

    /// <summary>All retries send the same idempotency key, so that the use counts once.</summary>
    static async Task<string> CountUse(string key)
    {
        string idempotencyKey = Guid.NewGuid().ToString();
        DateTime end = DateTime.UtcNow + Deadline;
        for (int wait = 100; DateTime.UtcNow < end; wait = Math.Min(2 * wait, 2000))
        {
            try
            {
                var request = new HttpRequestMessage(HttpMethod.Put, "/api/v2/license/usage");
                request.Headers.Add("Idempotency-Key", idempotencyKey);
                request.Content = new FormUrlEncodedContent(new Dictionary<string, string>
                {
                    { "license_key", key },
                    { "product_key", Lease.Product },
                });
                var answer = await Http.Value.SendAsync(request);
                var body = await Read(answer);
                int status = (int)answer.StatusCode;
                string uses = Member(body, "data/uses");
                if (status == 200 && uses != "") return uses;
                if (status != 200 && status < 500 && status != 408 && status != 409 && status != 429)
                    return "refused (" + Member(body, "code") + ")";
            }
            catch (Exception error) when (IsNoAnswer(error))
            {
                // The use may have been counted: repeat the request to find out.
            }
            await Task.Delay(wait);
        }
        return "later, under " + idempotencyKey;
    }

    /// <summary>The final verdict: a missing answer is not a "no", and only "disabled" revokes at once.</summary>
    static string Remembered(string verdict)
    {
        try
        {
            if (verdict == "valid" || verdict == "refused: disabled")
                File.WriteAllText(LastKnown, until.Ticks + " " + verdict);
            if (verdict != "undetermined" || !File.Exists(LastKnown)) return verdict;
            string[] line = File.ReadAllText(LastKnown).Split(new[] { ' ' }, 2);
            if (line.Length == 2 && line[1] == "refused: disabled") return line[1];
            long ticks;
            bool isRecent = long.TryParse(line[0], out ticks) && DateTime.UtcNow.Ticks <= ticks;
            if (line.Length == 2 && line[1] == "valid" && isRecent) return "valid (last known)";
        }
        catch (Exception error) when (error is IOException || error is UnauthorizedAccessException)
        {
            // A file that cannot be written must not change the verdict.
            Console.Error.WriteLine(error.Message);
        }
        return verdict;
    }

    /// <summary>
    /// An invalid address or secret throws a FormatException or an ArgumentException.
    /// </summary>
    static bool IsNoAnswer(Exception error)
    {
        return error is HttpRequestException || error is TaskCanceledException || error is IOException
            || error is XmlException || error is FormatException || error is ArgumentException
            || error is System.Security.Cryptography.CryptographicException || error is OverflowException;
    }

    /// <summary>Reads JSON as XML, which .NET and Mono both can; only .NET has System.Text.Json.</summary>
    static async Task<XmlDocument> Read(HttpResponseMessage answer)
    {
        return Parse(await answer.Content.ReadAsByteArrayAsync());
    }

    public static XmlDocument Parse(byte[] body)
    {
        var document = new XmlDocument();
        document.Load(JsonReaderWriterFactory.CreateJsonReader(body, XmlDictionaryReaderQuotas.Max));
        return document;
    }

    static string Member(XmlDocument body, string path)
    {
        XmlNode found = body.SelectSingleNode("/root/" + path);
        return found == null ? "" : found.InnerText;
    }

    static string Getenv(string name, string otherwise)
    {
        string value = Environment.GetEnvironmentVariable(name);
        return string.IsNullOrEmpty(value) ? otherwise : value;
    }
}
